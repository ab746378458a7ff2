#include "cases/text.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/random.h"

// read a text
Text text_read(const char *path, size_t least)
{
	Text t = { 0 };
	FILE *f = fopen(path, "rb");
	if (f == NULL)
		usage_error("cannot read %s: %s", path, strerror(errno));
	for (int byte; (byte = getc(f)) != EOF;) {
		t.bytes = grow(t.bytes, t.n, sizeof *t.bytes);
		t.bytes[t.n++] = byte;
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

// score held-out bytes by counting
size_t text_held_out(const Text *t, Windows w, size_t i)
{
	return t->ntrain + i * (t->n - t->ntrain - w.T - 1) / w.n;
}

/* f(state, the byte before, the byte) for each byte of the windows */
static void for_each_pair(const Text *t, Windows w,
	void (*f)(void *state, unsigned char before, unsigned char byte),
	void *state)
{
	for (size_t i = 0; i < w.n; i++) {
		const unsigned char *at = t->bytes + text_held_out(t, w, i);
		for (size_t k = 1; k <= w.T; k++)
			f(state, at[k - 1], at[k]);
	}
}

// count and score pairs of bytes
/* counts of each byte after each byte, and after any; nats of what they scored */
typedef struct PairCounts {
	double count[256][256], total[256], nats;
} PairCounts;

static void count_pair(void *pairs, unsigned char before, unsigned char byte)
{
	PairCounts *p = pairs;
	p->count[before][byte]++;
	p->total[before]++;
}

static void score_pair(void *pairs, unsigned char before, unsigned char byte)
{
	PairCounts *p = pairs;
	p->nats -= log(p->count[before][byte] / p->total[before]);
}

// score unigrams, bigrams and their bound
/* sets all counts to `start` */
static void begin_pairs(PairCounts *p, double start)
{
	p->nats = 0;
	for (int a = 0; a < 256; a++) {
		p->total[a] = 256 * start;
		for (int b = 0; b < 256; b++)
			p->count[a][b] = start;
	}
}

static double score(PairCounts *p, const Text *t, Windows w)
{
	for_each_pair(t, w, score_pair, p);
	return p->nats / (w.n * w.T);
}

double text_unigram_nats(const Text *t, Windows w)
{
	static PairCounts p;
	begin_pairs(&p, 1);
	for (size_t i = 0; i < t->ntrain; i++)
		count_pair(&p, 0, t->bytes[i]);
	for (int a = 1; a < 256; a++) {
		memcpy(p.count[a], p.count[0], sizeof p.count[a]);
		p.total[a] = p.total[0];
	}
	return score(&p, t, w);
}

double text_bigram_nats(const Text *t, Windows w)
{
	static PairCounts p;
	begin_pairs(&p, 1);
	for (size_t i = 1; i < t->ntrain; i++)
		count_pair(&p, t->bytes[i - 1], t->bytes[i]);
	return score(&p, t, w);
}

double text_bigram_bound_nats(const Text *t, Windows w)
{
	static PairCounts p;
	begin_pairs(&p, 0);
	for_each_pair(t, w, count_pair, &p);
	return score(&p, t, w);
}

// draw windows
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
