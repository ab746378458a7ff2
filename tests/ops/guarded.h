/* guarded.h: arrays between guards, poisoned or drawn */
#ifndef TESTS_GUARDED_H
#define TESTS_GUARDED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/random.h"
#include "ops/array.h"
#include "tests/base/program.h"

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

#endif
