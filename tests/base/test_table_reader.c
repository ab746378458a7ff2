/* tables that are read: cells by column, and files that are refused */
#define _GNU_SOURCE
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/table.h"
#include "base/table_reader.h"
#include "tests/base/exits.h"
#include "tests/base/folder.h"
#include "tests/base/program.h"

// test: cells are found
static void write_table(const char *rows)
{
	Table *t = table_new(path, "size context status", 2);
	table_meta(t, "backend", "cpu");
	table_resume(t, false);
	table_append(t, rows);
	table_close(t, true);
}

static void cells_are_found(void **state)
{
	write_table("small\t128\tfwd_ms=1.5\tstatus=ok\nxl\t\tstatus=oom: 3\n");
	Records *r = records_read(path);
	assert_int_equal(records_columns(r), 4);
	assert_string_equal(records_column(r, 2), "fwd_ms");
	assert_string_equal(records_cell(r, 1, 3), "oom: 3");
	assert_int_equal(records_count(r), 2);
	assert_true(records_head_is(r, "backend", "cpu"));
	assert_false(records_head_is(r, "backend", "cp"));
	assert_false(records_head_is(r, "backen", "cpu"));
	assert_int_equal(strncmp(records_head(r, "backend"), "cpu\n", 4), 0);
	assert_null(records_head(r, "date"));
	assert_string_equal(records_text(r, 1, "status"), "oom: 3");
	assert_string_equal(records_text(r, 1, "context"), "");
	assert_true(records_is(r, 0, "size", "small"));
	assert_false(records_is(r, 0, "size", "smal"));
	assert_true(records_number(r, 0, "fwd_ms") == 1.5);
	assert_true(isnan(records_number(r, 1, "fwd_ms")));
	assert_true(isnan(records_number(r, 1, "context")));
	assert_null(records_text(r, 0, "bwd_ms"));
	assert_true(isnan(records_number(r, 0, "bwd_ms")));
	records_free(&r);
	assert_null(r);
	assert_null(records_read("/tmp/no such folder/t.tsv"));
}

// test: damaged files are refused
static void read_it(void *unused)
{
	Records *r = records_read(path);
	records_free(&r);
}

/* changes the byte at `at`; -1: cuts off the last one */
static void damage(long at)
{
	FILE *f = fopen(path, "r+");
	assert_non_null(f);
	if (at < 0) {
		assert_int_equal(fseek(f, -1, SEEK_END), 0);
		assert_int_equal(ftruncate(fileno(f), ftell(f)), 0);
	} else {
		assert_int_equal(fseek(f, at, SEEK_SET), 0);
		int c = fgetc(f);
		assert_int_equal(fseek(f, at, SEEK_SET), 0);
		fputc(c ^ 1, f);
	}
	fclose(f);
}

static void damaged_files_are_refused(void **state)
{
	static const long places[] = { 0, 2, 20, 32, 40, 90, -1 };
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		write_table("small\t128\tfwd_ms=1.5\tstatus=ok\n");
		assert_int_equal(exit_status(read_it, NULL), 0);
		damage(places[i]);
		assert_int_equal(exit_status(read_it, NULL), 2);
	}
	FILE *f = fopen(path, "w");
	fclose(f);
	assert_int_equal(exit_status(read_it, NULL), 2);
}

// test: rows have all cells
static void write_with_checksum(const char *text)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "# checksum: %016" PRIx64 "\n%s", table_checksum(text), text);
	fclose(f);
}

static void rows_have_all_cells(void **state)
{
	static const char *const bad[] = { "# x: y\na\tb\n1\n", "a\tb\n1\t2\t3\n",
		"a\tb\n1\t2\n\n3\t4\n", "", "# x: y\n#" };
	write_with_checksum("# x: y\na\tb\n1\t2\n");
	assert_int_equal(exit_status(read_it, NULL), 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		write_with_checksum(bad[i]);
		assert_int_equal(exit_status(read_it, NULL), 2);
	}
}

TESTS_BETWEEN(make_folder, remove_folder,
	cmocka_unit_test(cells_are_found),
	cmocka_unit_test(damaged_files_are_refused),
	cmocka_unit_test(rows_have_all_cells))
