#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/safetensors.h"
#include "tests/base/exits.h"

static char path[] = "/tmp/test_safetensors.XXXXXX";
static const float weights[6] = { 1, 2, 3, 4, 5, 6 };
static const double loss[1] = { 0.25 };
static const TensorView views[] = {
	{ .name = "loss64", .dtype = "F64", .ndim = 1, .shape = { 1 }, .count = 1,
		.data = loss },
	{ .name = "w", .dtype = "F32", .ndim = 2, .shape = { 2, 3 }, .count = 6,
		.data = weights },
};
static const char *const meta[] = { "d_model", "3", "source", "test", NULL };

static void round_trip(void **state)
{
	(void)state;
	tensorfile_write(path, views, 2, meta);
	TensorFile *f = tensorfile_open(path);
	assert_int_equal(tensorfile_count(f), 2);
	assert_string_equal(tensorfile_meta(f, "d_model"), "3");
	assert_null(tensorfile_meta(f, "d_ff"));
	const TensorView *w = tensorfile_expect(f, "w", "F32", 6);
	assert_true(w->ndim == 2 && w->shape[0] == 2 && w->shape[1] == 3);
	assert_memory_equal(w->data, weights, sizeof weights);
	assert_true(*(const double *)tensorfile_find(f, "loss64")->data == 0.25);
	tensorfile_close(&f);
	assert_null(f);
}
static char image[4096];
static size_t nbytes;

static void open_image(void *n)
{
	FILE *f = fopen(path, "wb");
	fwrite(image, 1, *(size_t *)n, f);
	fclose(f);
	TensorFile *t = tensorfile_open(path);
	for (int i = 0; i < tensorfile_count(t); i++) {
		const TensorView *v = tensorfile_at(t, i);
		volatile char first = v->count ? *(const char *)v->data : 0;
		(void)first;
	}
}

static void damage_is_refused(void **state)
{
	(void)state;
	tensorfile_write(path, views, 2, meta);
	FILE *f = fopen(path, "rb");
	nbytes = fread(image, 1, sizeof image, f);
	fclose(f);
	for (size_t n = 0; n < nbytes; n++)
		assert_int_equal(exit_status(open_image, &n), 2);
	for (size_t i = 0; i < nbytes - sizeof weights - sizeof loss; i++) {
		char whole = image[i];
		image[i] = '~';
		int status = exit_status(open_image, &nbytes);
		if (status != 0 && status != 2)
			fail_msg("byte %zu damaged: exit status %d", i, status);
		image[i] = whole;
	}
}

static void expect_tensor(void *name)
{
	tensorfile_expect(tensorfile_open(path), name, "F32", 6);
}

static void wrong_expectations_are_refused(void **state)
{
	(void)state;
	tensorfile_write(path, views, 2, meta);
	assert_int_equal(exit_status(expect_tensor, "w"), 0);
	assert_int_equal(exit_status(expect_tensor, "loss64"), 2);
	assert_int_equal(exit_status(expect_tensor, "absent"), 2);
}

int main(void)
{
	if (mkstemp(path) < 0)
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(damage_is_refused),
		cmocka_unit_test(wrong_expectations_are_refused),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
