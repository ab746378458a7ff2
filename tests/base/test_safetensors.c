#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "base/safetensors.h"
#include "tests/base/exits.h"
#include "tests/base/folder.h"
#include "tests/base/headers.h"
#include "tests/base/program.h"

static const float weights[6] = { 1, 2, 3, 4, 5, 6 };
static const double loss[1] = { 0.25 };
static const TensorView views[] = {
	{ .name = "loss64", .dtype = "F64", .ndim = 1, .shape = { 1 }, .count = 1,
		.data = loss },
	{ .name = "w", .dtype = "F32", .ndim = 2, .shape = { 2, 3 }, .count = 6,
		.data = weights },
};
static const char *const meta[] = { "d_model", "3", "source", "test", NULL };

// test the round trip
static void round_trip(void **state)
{
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

// test that damage is refused
static char image[4096];
static size_t nbytes;

/* by the digits of its name, of which BOOL has none */
static size_t element_bits(const char *dtype)
{
	const char *digits = strpbrk(dtype, "123456789");
	return digits ? strtoul(digits, NULL, 10) : 8;
}

static void open_image(void *n)
{
	FILE *f = fopen(path, "wb");
	fwrite(image, 1, *(size_t *)n, f);
	fclose(f);
	TensorFile *t = tensorfile_open(path);
	for (int i = 0; i < tensorfile_count(t); i++) {
		const TensorView *v = tensorfile_at(t, i);
		size_t n = (v->count * element_bits(v->dtype) + 7) / 8;
		volatile char first = n ? *(const char *)v->data : 0,
			last = n ? ((const char *)v->data)[n - 1] : 0;
		(void)first, (void)last;
	}
}

static void damage_is_refused(void **state)
{
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

// test that the rules of the format are kept
static void rules_are_kept(void **state)
{
	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
		uint64_t length = headers[i].nbytes;
		memcpy(image, &length, 8);
		memcpy(image + 8, headers[i].text, length);
		memset(image + 8 + length, 7, headers[i].data_nbytes);
		nbytes = 8 + length + headers[i].data_nbytes;
		int status = exit_status(open_image, &nbytes);
		if (status != headers[i].status)
			fail_msg("%s with %zu bytes: exit status %d", headers[i].text,
				headers[i].data_nbytes, status);
	}
}

// test that escapes are read and written
static void write_text(const char *header, size_t data_nbytes)
{
	uint64_t length = strlen(header);
	FILE *f = fopen(path, "wb");
	fwrite(&length, 8, 1, f);
	fwrite(header, 1, length, f);
	for (size_t i = 0; i < data_nbytes; i++)
		fputc(7, f);
	fclose(f);
}

static void escapes_are_read(void **state)
{
	write_text("{" META("\"k\\n\":\"\\ud83d\\ude00\\u00e9\\u20AC\\u0041\","
		"\"b\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u001f\"") ","
		T("a", "1", "0", "1") "," T("a\\u0000b", "2", "1", "3") ","
		T("caf\\u00e9", "3", "3", "6") "}", 6);
	TensorFile *f = tensorfile_open(path);
	assert_string_equal(tensorfile_meta(f, "k\n"),
		"\360\237\230\200\303\251\342\202\254A");
	assert_string_equal(tensorfile_meta(f, "b"), "\"\\/\b\f\n\r\t\037");
	assert_int_equal(tensorfile_find(f, "a")->count, 1);
	assert_int_equal(tensorfile_find(f, "a\300\200b")->count, 2);
	assert_int_equal(tensorfile_find(f, "caf\303\251")->count, 3);
	tensorfile_close(&f);
}

static void escapes_are_written(void **state)
{
	char all[160] = "\300\200";
	for (int c = 1; c < 128; c++)
		all[1 + c] = (char)c;
	strcat(all, "\303\251\342\202\254\360\237\230\200");
	TensorView v = views[1];
	v.name = all;
	tensorfile_write(path, &v, 1, (const char *const[]){ all, all, NULL });
	TensorFile *f = tensorfile_open(path);
	assert_string_equal(tensorfile_meta(f, all), all);
	assert_string_equal(tensorfile_at(f, 0)->name, all);
	assert_memory_equal(tensorfile_expect(f, all, "F32", 6)->data, weights,
		sizeof weights);
	tensorfile_close(&f);
}

// test that unasked tensors are no fault
static void expect_first(void *name)
{
	TensorFile *f = tensorfile_open(path);
	tensorfile_expect(f, name, "F32", tensorfile_find(f, name)->count);
}

static void unasked_tensors_are_no_fault(void **state)
{
	write_text("{" E("w", "\"F32\"", "1", "0", "4", "") ","
		E("six", "\"F6_E2M3\"", "4", "4", "7", "") ","
		E("scale", "\"F8_E8M0\"", "1,1,1,1,1,1,1,1,2", "7", "9", "") "}", 9);
	assert_int_equal(exit_status(expect_first, "w"), 0);
	assert_int_equal(exit_status(expect_first, "six"), 2);
	assert_int_equal(exit_status(expect_first, "scale"), 2);
	TensorFile *f = tensorfile_open(path);
	const TensorView *v = tensorfile_find(f, "scale");
	assert_string_equal(v->dtype, "F8_E8M0");
	assert_true(v->ndim == 9 && v->shape[7] == 1 && v->count == 2);
	assert_int_equal(tensorfile_find(f, "six")->count, 4);
	tensorfile_close(&f);
}

// edit files at random
enum { FILES = 2000 };

static uint32_t drawn(int file, uint32_t *at)
{
	return random_bits(1, file, (*at)++);
}

/* sets, inserts or removes a byte, most often in the header */
static void edit(int file, uint32_t *at)
{
	static const char likely[] = "{}[]\":,0123456789\\ abF\0\377";
	size_t where = drawn(file, at) % (drawn(file, at) % 4 ? 8 : nbytes);
	where = drawn(file, at) % 4 ? 8 + where * 37 % (nbytes - 8) : where;
	char c = likely[drawn(file, at) % (sizeof likely - 1)];
	switch (drawn(file, at) % 3) {
	case 0:
		image[where] = c;
		break;
	case 1:
		memmove(image + where + 1, image + where, nbytes++ - where);
		image[where] = c;
		break;
	default:
		memmove(image + where, image + where + 1, --nbytes - where);
	}
}

// test that random edits do no harm
static void edits_do_no_harm(void **state)
{
	static char original[sizeof image];
	tensorfile_write(path, views, 2, meta);
	FILE *f = fopen(path, "rb");
	size_t whole = fread(original, 1, sizeof original, f);
	fclose(f);
	for (int file = 0; file < FILES; file++) {
		uint32_t at = 0;
		memcpy(image, original, nbytes = whole);
		for (int n = 1 + drawn(file, &at) % 4; n > 0; n--)
			edit(file, &at);
		uint64_t length = nbytes - sizeof weights - sizeof loss - 8;
		if (file % 2)
			memcpy(image, &length, 8);
		int status = exit_status(open_image, &nbytes);
		if (status != 0 && status != 2)
			fail_msg("file %d: exit status %d", file, status);
	}
}

static void expect_tensor(void *name)
{
	tensorfile_expect(tensorfile_open(path), name, "F32", 6);
}

static void wrong_expectations_are_refused(void **state)
{
	tensorfile_write(path, views, 2, meta);
	assert_int_equal(exit_status(expect_tensor, "w"), 0);
	assert_int_equal(exit_status(expect_tensor, "loss64"), 2);
	assert_int_equal(exit_status(expect_tensor, "absent"), 2);
}

TESTS_BETWEEN(make_folder, remove_folder,
	cmocka_unit_test(round_trip),
	cmocka_unit_test(damage_is_refused),
	cmocka_unit_test(rules_are_kept),
	cmocka_unit_test(escapes_are_read),
	cmocka_unit_test(escapes_are_written),
	cmocka_unit_test(unasked_tensors_are_no_fault),
	cmocka_unit_test(edits_do_no_harm),
	cmocka_unit_test(wrong_expectations_are_refused))
