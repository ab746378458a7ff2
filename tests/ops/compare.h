/* compare.h: arrays between guards, and comparisons that a NaN fails */
#ifndef TESTS_COMPARE_H
#define TESTS_COMPARE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/random.h"
#include "ops/array.h"
#include "ops/cpu/cpu.h"
#include "ops/ops.h"
#include "tests/base/program.h"

#define EPS (TYPE_REAL == FP64 ? 0x1p-53 : 0x1p-24)  /* error of one rounding */

// keep the memory of a test between guards
enum { GUARD = 64, MAX_BLOCKS = 8192 };
static struct { unsigned char *at; size_t nbytes; } blocks[MAX_BLOCKS];
static size_t nblocks;

/* nbytes of 0xff between two guards, freed by release */
static inline void *guarded(size_t nbytes)
{
	assert_true(nblocks < MAX_BLOCKS);
	unsigned char *at = need(malloc(nbytes + 2 * GUARD));
	memset(at, 0xff, nbytes + 2 * GUARD);
	blocks[nblocks].at = at;
	blocks[nblocks++].nbytes = nbytes;
	return at + GUARD;
}

/* how many bytes of all guards have been written to */
static inline size_t damaged_guards(void)
{
	size_t damaged = 0;
	for (size_t b = 0; b < nblocks; b++)
		for (size_t i = 0; i < GUARD; i++)
			damaged += blocks[b].at[i] != 0xff
				|| blocks[b].at[GUARD + blocks[b].nbytes + i] != 0xff;
	return damaged;
}

static inline int release(void **state)
{
	size_t damaged = damaged_guards();
	while (nblocks > 0)
		free(blocks[--nblocks].at);
	if (damaged)
		print_error("%zu bytes outside the arrays were written\n", damaged);
	return damaged ? -1 : 0;
}

#define checked(test) cmocka_unit_test_teardown(test, release)

// make arrays, poisoned or drawn
static inline real *reals(Array a)
{
	return a.at;
}

/* n elements, all NaN */
static inline Array poisoned(size_t n)
{
	return (Array){ guarded(n * sizeof(real)), TYPE_REAL };
}

/* n elements, normal with this mean and standard deviation, cut at three of
 * those; equal streams have equal numbers */
static inline Array drawn(size_t n, int stream, double mean, double sd)
{
	Array a = poisoned(n);
	for (size_t i = 0; i < n; i++)
		reals(a)[i] = (real)(mean + sd * random_truncated(1, stream, i, 3));
	return a;
}

static inline Array copied(Array a, size_t n)
{
	Array copy = poisoned(n);
	memcpy(copy.at, a.at, n * sizeof(real));
	return copy;
}

static inline int32_t *drawn_tokens(size_t n, int stream, size_t vocabulary)
{
	int32_t *tokens = guarded(n * sizeof *tokens);
	for (size_t i = 0; i < n; i++)
		tokens[i] = (int32_t)(random_bits(1, stream, i) % vocabulary);
	return tokens;
}

// compare with expected values
typedef struct Expected {
	double value, limit;           /* the largest |got - value| allowed */
} Expected;

typedef struct Mismatch {
	size_t count, worst;           /* elements out of bounds; the worst of them */
	double excess;
} Mismatch;

/* a value that is wrong by at most so many roundings of that magnitude */
static inline Expected rounded(double value, double magnitude, double roundings)
{
	return (Expected){ value, roundings * EPS * magnitude };
}

/* holds got[i] against want[i]; a NaN in either is a mismatch, and infinity
 * agrees with itself alone */
static inline Mismatch compare(const real *got, const Expected *want, size_t n)
{
	Mismatch m = { 0 };
	for (size_t i = 0; i < n; i++) {
		double error = fabs(got[i] - want[i].value);
		if (error <= want[i].limit
			|| (isinf(want[i].value) && got[i] == want[i].value))
			continue;
		double excess = isnan(error) ? INFINITY : error - want[i].limit;
		if (m.count++ == 0 || excess > m.excess)
			m.worst = i, m.excess = excess;
	}
	return m;
}

static inline Expected *expected(size_t n)
{
	return guarded(n * sizeof(Expected));
}

static inline void expect_close(const char *what, Array got,
	const Expected *want, size_t n)
{
	Mismatch m = compare(got.at, want, n);
	if (m.count)
		fail_msg("%s: %zu of %zu elements are wrong, worst is element %zu: "
			"%.9g, not %.9g within %.2g", what, m.count, n, m.worst,
			(double)reals(got)[m.worst], want[m.worst].value,
			want[m.worst].limit);
}

// compare bit for bit
static inline void expect_same(const char *what, Array got, Array want,
	size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (memcmp(&reals(got)[i], &reals(want)[i], sizeof(real)) != 0)
			fail_msg("%s: element %zu of %zu differs: %.9g, not %.9g", what,
				i, n, (double)reals(got)[i], (double)reals(want)[i]);
}

#endif
