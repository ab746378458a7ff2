#include "experiments/text.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/random.h"

Text text_read(const char *path, size_t least)
{
	Text t = { 0 };
	FILE *f = fopen(path, "rb");
	if (f == NULL)
		usage_error("cannot read %s: %s", path, strerror(errno));
	size_t capacity = 1 << 16, got;
	t.bytes = need(malloc(capacity));
	while ((got = fread(t.bytes + t.n, 1, capacity - t.n, f)) > 0) {
		t.n += got;
		if (t.n == capacity)
			t.bytes = need(realloc(t.bytes, capacity *= 2));
	}
	if (ferror(f))
		usage_error("cannot read %s: %s", path, strerror(errno));
	fclose(f);
	if (t.n < least)
		usage_error("%s has %zu bytes, expected at least %zu", path, t.n,
			least);
	t.ntrain = t.n - t.n / 10;
	return t;
}

void text_free(Text *t)
{
	free(t->bytes);
}
double text_unigram_nats(const Text *t)
{
	double count[256], nats = 0;
	for (int i = 0; i < 256; i++)
		count[i] = 1;
	for (size_t i = 0; i < t->ntrain; i++)
		count[t->bytes[i]]++;
	for (size_t i = t->ntrain; i < t->n; i++)
		nats -= log(count[t->bytes[i]] / (t->ntrain + 256));
	return nats / (t->n - t->ntrain);
}

static double pair_nats(const Text *t, size_t first, double start)
{
	static double count[256][256], total[256];
	for (int a = 0; a < 256; a++) {
		total[a] = 256 * start;
		for (int b = 0; b < 256; b++)
			count[a][b] = start;
	}
	size_t last = first > 1 ? t->n : t->ntrain;
	for (size_t i = first; i < last; i++) {
		count[t->bytes[i - 1]][t->bytes[i]]++;
		total[t->bytes[i - 1]]++;
	}
	double nats = 0;
	for (size_t i = t->ntrain; i < t->n; i++)
		nats -= log(count[t->bytes[i - 1]][t->bytes[i]]
			/ total[t->bytes[i - 1]]);
	return nats / (t->n - t->ntrain);
}

double text_bigram_nats(const Text *t)
{
	return pair_nats(t, 1, 1);
}

double text_bigram_bound_nats(const Text *t)
{
	return pair_nats(t, t->ntrain, 0);
}
void text_window(const Text *t, size_t at, size_t T, int32_t *tokens,
	int32_t *targets)
{
	assert(at + T < t->n);
	for (size_t i = 0; i < T; i++) {
		tokens[i] = t->bytes[at + i];
		targets[i] = t->bytes[at + i + 1];
	}
}

void text_windows(const Text *t, size_t first, size_t last, uint64_t seed,
	uint64_t step, size_t B, size_t T,
	int32_t *tokens, int32_t *targets)
{
	assert(last <= t->n && last - first > T);
	for (size_t b = 0; b < B; b++)
		text_window(t, first + random_bits(seed, 3, step * B + b)
			% (last - first - T), T, tokens + b * T, targets + b * T);
}
