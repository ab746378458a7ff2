#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/table.h"
#include "tests/base/exits.h"

static char path[] = "/tmp/test_table.XXXXXX/deep/t.tsv";

static Table *open_table(int seed)
{
	Table *t = table_new(path, "size context fwd_ms status", 2);
	table_meta(t, "seed", "%d", seed);
	table_meta(t, "date", "%ld", (long)getpid());
	return t;
}

static void unfinished_run_is_resumed(void **state)
{
	(void)state;
	struct stat s;
	Table *t = open_table(1);
	assert_int_equal(table_resume(t, true), 0);
	table_append(t, "small\t128\t1.5\tok\nsmall\t256\t2.5\tok\n");
	assert_true(stat(path, &s) == 0 && s.st_mtime == 0);
	table_close(t, false);
	t = open_table(1);
	assert_int_equal(table_resume(t, true), 2);
	assert_true(table_has(t, "small\t256") && !table_has(t, "small\t25")
		&& !table_has(t, "small\t2567"));
	table_append(t, "small\t512\t3.5\tok\n");
	table_close(t, true);
	assert_true(stat(path, &s) == 0 && s.st_mtime > 0);
	t = open_table(1);
	assert_int_equal(table_resume(t, true), 3);
	table_close(t, false);
	t = open_table(2);
	assert_int_equal(table_resume(t, true), 0);
	table_close(t, false);
}
static void write_and_resume(void *text)
{
	FILE *f = fopen(path, "w");
	fputs(text, f);
	fclose(f);
	table_resume(open_table(1), true);
}

static void damaged_tables_are_refused(void **state)
{
	(void)state;
#define HEAD "# seed: 1\n# date: x\n# complete: yes\n" \
	"size\tcontext\tfwd_ms\tstatus\n"
	assert_int_equal(exit_status(write_and_resume, HEAD "a\tb\tc\td\n"), 0);
	assert_int_equal(exit_status(write_and_resume, HEAD "a\tb\tc\td"), 2);
	assert_int_equal(exit_status(write_and_resume, HEAD "a\tb\tc\n"), 2);
	assert_int_equal(exit_status(write_and_resume, HEAD "a\tb\tc\td\te\n"), 2);
	assert_int_equal(exit_status(write_and_resume,
		"# seed\n" HEAD "a\tb\tc\td\n"), 2);
	assert_int_equal(exit_status(write_and_resume, "---\ntitle: x\n"), 2);
}

int main(void)
{
	path[strlen("/tmp/test_table.XXXXXX")] = '\0';
	if (!mkdtemp(path))
		return 1;
	path[strlen(path)] = '/';
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unfinished_run_is_resumed),
		cmocka_unit_test(damaged_tables_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
