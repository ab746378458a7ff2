/* text.h: a text as bytes: training part, held-out part, and what counting
 * alone achieves */
#ifndef CASES_TEXT_H
#define CASES_TEXT_H

#include <stddef.h>
#include <stdint.h>

typedef struct Text {
	unsigned char *bytes;
	size_t n, ntrain;        /* the held-out part is bytes[ntrain..n-1] */
} Text;

/* reads a text; exits 2 unless the file has `least` bytes */
Text   text_read(const char *path, size_t least);
void   text_free(Text *t);
/* the scored bytes: n windows of T bytes, and the byte after each of these */
typedef struct Windows { size_t n, T; } Windows;
/* the start of window i; windows are spread evenly over the held-out part */
size_t text_held_out(const Text *t, Windows w, size_t i);
/* nats per byte of the windows, by counts from the training part */
double text_unigram_nats(const Text *t, Windows w);
double text_bigram_nats(const Text *t, Windows w);
/* nats per byte by the best table of pairs, counted in the windows themselves */
double text_bigram_bound_nats(const Text *t, Windows w);
/* sets tokens and targets, (T) each: bytes from `at` on, and the byte after
 * each */
void   text_window(const Text *t, size_t at, size_t T, int32_t *tokens,
	int32_t *targets);
/* sets tokens and targets, (B, T) each: windows at positions in [first, last)
 * that are drawn from (seed, step) */
void   text_windows(const Text *t, size_t first, size_t last, uint64_t seed,
	uint64_t step, size_t B, size_t T,
		int32_t *tokens, int32_t *targets);

#endif
