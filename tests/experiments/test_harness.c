#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "bench/harness.h"
#include "tests/base/exits.h"

static char folder[] = "/tmp/test_harness.XXXXXX", table_path[64],
	count_path[64];
static int crash;

static void plan(Plan *p)
{
	for (int i = 0; i < 4; i++)
		plan_add(p, "%d", i);
}

static void run(Row *row)
{
	int f = open(count_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (write(f, "x", 1) != 1)
		abort();
	close(f);
	switch (row_int(row, "case")) {
	case 0:
		row_set(row, "x_ms", "%.1f", 1.5);
		break;
	case 1:
		device_alloc(harness_device(), (size_t)1 << 50, MEM_TEMPORARY,
			"far too much");
		break;
	case 2:
		if (crash)
			abort();
		break;
	case 3:
		for (int i = 0; i < 3; i++) {
			row_set(row, "x_ms", "%d", i);
			row_emit(row);
		}
	}
}

static void plan_other(Plan *p)
{
	plan_add(p, "a\tb");
}

static void run_other(Row *row)
{
	row_set(row, "y", "%s-%s", row_text(row, "first"), row_text(row, "second"));
}

static const Sweep sweeps[] = {
	{ "cases", "case", "x_ms", plan, run },
	{ "other", "first second", "y", plan_other, run_other },
	{ 0 }
};

static const Experiment experiment = {
	.name = "trial", .about = "a test", .sweeps = sweeps,
};
static int run_trial(void)
{
	char *argv[] = { "trial", "--sweep=cases", "--out", table_path, NULL };
	fflush(NULL);
	return harness_main(&experiment, 4, argv);
}

static int runs_so_far(void)
{
	struct stat s;
	return stat(count_path, &s) == 0 ? (int)s.st_size : 0;
}

static char *read_table(void)
{
	static char text[8192];
	FILE *f = fopen(table_path, "r");
	assert_non_null(f);
	text[fread(text, 1, sizeof text - 1, f)] = '\0';
	fclose(f);
	return text;
}
static void every_outcome_has_its_row(void **state)
{
	(void)state;
	crash = 1;
	assert_int_equal(run_trial(), 1);
	char *text = read_table();
	assert_non_null(strstr(text,
		"# complete: no\ncase\tx_ms\tstatus\n0\t1.5\tok\n"
		"1\t-\toom: far too much needs"));
	assert_non_null(strstr(text, "MiB free\n3\t0\tok\n3\t1\tok\n3\t2\tok\n"));
	assert_null(strstr(text, "\n2\t"));
	struct stat s;
	assert_true(stat(table_path, &s) == 0 && s.st_mtime == 0);
}

static void finished_rows_are_kept(void **state)
{
	(void)state;
	crash = 0;
	int before = runs_so_far();
	assert_int_equal(run_trial(), 0);
	assert_int_equal(runs_so_far(), before + 1);
	assert_non_null(strstr(read_table(), "# complete: yes\n"));
	assert_non_null(strstr(read_table(), "\n2\t-\tok\n"));
	assert_int_equal(run_trial(), 0);
	assert_int_equal(runs_so_far(), before + 1);
}

static void run_with(void *argument)
{
	char *argv[] = { "trial", argument, NULL };
	harness_main(&experiment, 2, argv);
}

static void sweeps_have_their_columns(void **state)
{
	(void)state;
	char *argv[] = { "trial", "--sweep=other", "--out", table_path, NULL };
	assert_int_equal(harness_main(&experiment, 4, argv), 0);
	assert_non_null(strstr(read_table(),
		"\nfirst\tsecond\ty\tstatus\na\tb\ta-b\tok\n"));
}

static void bad_options_exit_2(void **state)
{
	(void)state;
	assert_int_equal(exit_status(run_with, "--speed"), 2);
	assert_int_equal(exit_status(run_with, "--sweep=none"), 2);
	assert_int_equal(exit_status(run_with, "--device=tpu"), 2);
	assert_int_equal(exit_status(run_with, "--out=/proc/x/y.tsv"), 2);
	assert_int_equal(exit_status(run_with, "--out=/tmp"), 2);
	assert_int_equal(exit_status(run_with, "stray"), 2);
}

int main(void)
{
	if (!mkdtemp(folder))
		return 1;
	snprintf(table_path, sizeof table_path, "%s/t.tsv", folder);
	snprintf(count_path, sizeof count_path, "%s/count", folder);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_outcome_has_its_row),
		cmocka_unit_test(finished_rows_are_kept),
		cmocka_unit_test(sweeps_have_their_columns),
		cmocka_unit_test(bad_options_exit_2),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
