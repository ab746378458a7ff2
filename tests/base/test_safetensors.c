#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "base/safetensors.h"
#include "tests/base/exits.h"
#include "tests/base/folder.h"
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

static void open_image(void *n)
{
	FILE *f = fopen(path, "wb");
	fwrite(image, 1, *(size_t *)n, f);
	fclose(f);
	TensorFile *t = tensorfile_open(path);
	for (int i = 0; i < tensorfile_count(t); i++) {
		const TensorView *v = tensorfile_at(t, i);
		volatile char first = v->count ? *(const char *)v->data : 0,
			last = v->count ? ((const char *)v->data)[v->count - 1] : 0;
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

// read headers that are nearly right
#define T(NAME, COUNT, FROM, TO) "\"" NAME "\":{\"dtype\":\"U8\"," \
	"\"shape\":[" COUNT "],\"data_offsets\":[" FROM "," TO "]}"
#define META(PAIRS) "\"__metadata__\":{" PAIRS "}"
#define HEADER(TEXT, DATA, STATUS) { TEXT, sizeof TEXT - 1, DATA, STATUS }

static const struct {
	const char *text;
	size_t nbytes, data_nbytes;
	int status;
} headers[] = {
	HEADER("{}", 0, 0), HEADER("{}", 1, 2), HEADER("{}  ", 0, 0),
	HEADER("{" T("a", "4", "0", "4") "}", 4, 0),
	HEADER("{" T("a", "", "0", "1") "," T("b", "0", "1", "1") "}", 1, 0),
	HEADER("{" T("b", "1", "1", "2") "," T("a", "1", "0", "1") "}", 2, 0),
	HEADER("{" T("a", "4", "0", "4") "}", 5, 2),           /* left over */
	HEADER("{" T("a", "4", "0", "4") "}", 3, 2),
	HEADER("{" T("a", "4", "1", "5") "}", 5, 2),           /* a hole */
	HEADER("{" T("a", "1", "0", "1") "," T("b", "1", "2", "3") "}", 3, 2),
	HEADER("{" T("a", "2", "0", "2") "," T("b", "2", "1", "3") "}", 3, 2),
	HEADER("{" T("a", "2", "0", "2") "," T("b", "2", "0", "2") "}", 2, 2),
	HEADER("{" T("a", "1", "0", "1") "," T("a", "1", "1", "2") "}", 2, 2),
	// headers with metadata, and with fields that are wrong
	HEADER("{" META("\"k\":\"v\"") "}", 0, 0),
	HEADER("{" META("\"k\":\"v\",\"k\":\"w\"") "}", 0, 2),
	HEADER("{" META("") "," META("") "}", 0, 2),
	HEADER("{" META("\"k\":1") "}", 0, 2),
	HEADER("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],"
		"\"data_offsets\":[0,1]}}", 1, 2),
	HEADER("{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, 2),
	HEADER("{\"a\":{\"dtype\":\"U7\",\"shape\":[1],"
		"\"data_offsets\":[0,1]}}", 1, 2),
	HEADER("{" T("a", "01", "0", "1") "}", 1, 2),
	HEADER("{" T("a", "+1", "0", "1") "}", 1, 2),
	HEADER("{" T("a", "4294967296,4294967296", "0", "0") "}", 0, 2),
	HEADER("{" T("caf\303\251", "1", "0", "1") "}", 1, 0),
	HEADER("{" T("a\377", "1", "0", "1") "}", 1, 2),        /* not UTF-8 */
	HEADER("{" T("\300\257", "1", "0", "1") "}", 1, 2),
	HEADER("{" T("\355\240\200", "1", "0", "1") "}", 1, 2),
	HEADER("{" T("a\303", "1", "0", "1") "}", 1, 2),
	HEADER("{" T("a\0b", "1", "0", "1") "}", 1, 2),
	HEADER("{" T("a\tb", "1", "0", "1") "}", 1, 2),
	HEADER("{" T("a\\\0", "1", "0", "1") "}", 1, 2),
	HEADER("{" T("a\\u0041", "1", "0", "1") "}", 1, 2),
	HEADER(" {}", 0, 2), HEADER("{}\0", 0, 2), HEADER("{},", 0, 2),
	HEADER("{", 0, 2), HEADER("", 0, 2), HEADER("[]", 0, 2),
};

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
	cmocka_unit_test(edits_do_no_harm),
	cmocka_unit_test(wrong_expectations_are_refused))
