/* algorithms of matmuls in a file: written, read, kept for others, refused */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "ops/gemm_choices.h"
#include "tests/base/exits.h"
#include "tests/base/folder.h"
#include "tests/base/program.h"

// write choices, and find them
static GemmChoice choice(uint64_t seed)
{
	GemmChoice c = { .first_ms = 2.5, .best_ms = 0.0625 * (double)seed };
	for (int i = 0; i < GEMM_NUMBERS; i++)
		c.number[i] = seed * 1000003 + i;
	for (int i = 0; i < GEMM_WORDS; i++)
		c.word[i] = UINT64_MAX / (seed + i);
	return c;
}

static void add_and_write(const char *place, uint64_t first, uint64_t last)
{
	GemmChoices *c = gemm_choices_read(path, place);
	for (uint64_t seed = first; seed <= last; seed++) {
		GemmChoice one = choice(seed);
		gemm_choices_add(c, &one);
	}
	gemm_choices_write(c);
	gemm_choices_free(&c);
	assert_null(c);
}

static void expect_found(const char *place, uint64_t seed)
{
	GemmChoices *c = gemm_choices_read(path, place);
	GemmChoice want = choice(seed);
	const GemmChoice *got = gemm_choices_find(c, want.number);
	assert_non_null(got);
	assert_memory_equal(got->word, want.word, sizeof want.word);
	assert_true(got->first_ms == want.first_ms && got->best_ms == want.best_ms);
	gemm_choices_free(&c);
}

// test: choices come back
static void choices_come_back(void **state)
{
	remove(path);
	add_and_write("GPU 1, library 2", 1, 3);
	add_and_write("GPU 1, library 3", 3, 9);
	add_and_write("GPU 1, library 2", 4, 4);
	for (uint64_t seed = 1; seed <= 4; seed++)
		expect_found("GPU 1, library 2", seed);
	for (uint64_t seed = 3; seed <= 9; seed++)
		expect_found("GPU 1, library 3", seed);
	GemmChoices *c = gemm_choices_read(path, "GPU 1");
	assert_int_equal(gemm_choices_counts(c).choices, 0);
	gemm_choices_free(&c);
	c = gemm_choices_read(path, "GPU 1, library 2");
	GemmChoice other = choice(7), again = choice(2);
	assert_int_equal(gemm_choices_counts(c).choices, 4);
	assert_int_equal(gemm_choices_counts(c).added, 0);
	assert_null(gemm_choices_find(c, other.number));
	again.word[3] = 5;
	gemm_choices_begin(c);
	gemm_choices_begin(c);
	gemm_choices_add(c, &again);
	assert_int_equal(gemm_choices_counts(c).begun, 1);
	assert_int_equal(gemm_choices_counts(c).choices, 4);
	assert_int_equal(gemm_choices_counts(c).added, 1);
	assert_true(gemm_choices_find(c, again.number)->word[3] == 5);
	gemm_choices_free(&c);
}

// test: nothing is written, and damage is refused
static void nothing_new_writes_nothing(void **state)
{
	remove(path);
	add_and_write("here", 2, 1);
	assert_int_not_equal(access(path, F_OK), 0);
}

static void read_it(void *place)
{
	GemmChoices *c = gemm_choices_read(path, place);
	gemm_choices_free(&c);
}

static void damaged_files_are_refused(void **state)
{
	static const char *const places[] = { "here", "elsewhere" };
	remove(path);
	add_and_write("here", 1, 2);
	FILE *f = fopen(path, "r+");
	assert_non_null(f);
	assert_int_equal(exit_status(read_it, "here"), 0);
	fseek(f, 0, SEEK_END);
	for (long end = ftell(f), at = 0; at < end - 1; at += at < 60 ? 1 : 37) {
		fseek(f, at, SEEK_SET);
		int c = fgetc(f);
		fseek(f, at, SEEK_SET);
		fputc(c ^ 1, f);
		fflush(f);
		for (int i = 0; i < 2; i++)
			assert_int_equal(exit_status(read_it, (void *)places[i]), 2);
		fseek(f, at, SEEK_SET);
		fputc(c, f);
		fflush(f);
	}
	assert_int_equal(exit_status(read_it, "here"), 0);
	assert_int_equal(ftruncate(fileno(f), ftell(f) / 2), 0);
	assert_int_equal(exit_status(read_it, "here"), 2);
	fclose(f);
}

TESTS_BETWEEN(make_folder, NULL,
	cmocka_unit_test(choices_come_back),
	cmocka_unit_test(nothing_new_writes_nothing),
	cmocka_unit_test(damaged_files_are_refused),
	cmocka_unit_test(no_other_file_is_left))
