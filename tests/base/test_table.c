#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/table.h"
#include "tests/base/exits.h"
#include "tests/base/folder.h"

// open a table with a seed in its head
static Table *open_table(int seed)
{
	Table *t = table_new(path, "size context status", 2);
	table_meta(t, "seed", "%d", seed);
	table_meta(t, "date", "%ld", (long)getpid());
	return t;
}

// test that an unfinished run is resumed
static void unfinished_run_is_resumed(void **state)
{
	struct stat s;
	Table *t = open_table(1);
	assert_int_equal(table_resume(t, true), 0);
	table_append(t, "small\t128\tfwd_ms=1.5\tstatus=ok\n"
		"small\t256\tfwd_ms=2.5\tstatus=ok\n");
	assert_true(stat(path, &s) == 0 && s.st_mtime == 0);
	table_close(t, false);
	t = open_table(1);
	assert_int_equal(table_resume(t, true), 2);
	assert_true(table_has(t, "small\t256") && !table_has(t, "small\t25")
		&& !table_has(t, "small\t2567"));
	table_append(t, "small\t512\tfwd_ms=3.5\tstatus=ok\n");
	table_close(t, true);
	assert_true(stat(path, &s) == 0 && s.st_mtime > 0);
	t = open_table(1);
	assert_int_equal(table_resume(t, true), 3);
	table_close(t, false);
	t = open_table(2);
	assert_int_equal(table_resume(t, true), 0);
	table_close(t, false);
}

// test that damaged tables are refused
static void write_file(const char *text)
{
	FILE *f = fopen(path, "w");
	fputs(text, f);
	fclose(f);
}

static void write_table(const char *text)
{
	FILE *f = fopen(path, "w");
	fprintf(f, "# checksum: %016" PRIx64 "\n%s", table_checksum(text), text);
	fclose(f);
}

static char *read_file(void)
{
	static char text[4096];
	FILE *f = fopen(path, "r");
	text[fread(text, 1, sizeof text - 1, f)] = '\0';
	fclose(f);
	return text;
}

/* exits with 3 and the number of rows adopted on top */
static void resume(void *adopt)
{
	exit(3 + table_resume(open_table(1), adopt != NULL));
}

#define HEAD "# seed: 1\n# date: x\n# complete: yes\n" \
	"size\tcontext\tfwd_ms\tstatus\n"

static void damaged_tables_are_refused(void **state)
{
	static const char *const damaged[] = { HEAD "a\tb\tc\n",
		HEAD "a\tb\tc\td\te\n" };
	write_table(HEAD "a\tb\tc\td\n");
	assert_int_equal(exit_status(resume, ""), 4);
	char whole[4096], edited[4096];
	snprintf(whole, sizeof whole, "%s", read_file());
	for (size_t i = 0; i < strlen(whole); i++) {
		snprintf(edited, sizeof edited, "%s", whole);
		edited[i] ^= 1;
		write_file(edited);
		assert_int_equal(exit_status(resume, ""), 2);
		assert_string_equal(read_file(), edited);
		edited[i] = '\0';
		write_file(edited);
		assert_int_equal(exit_status(resume, ""), i ? 2 : 3);
	}
	for (int i = 0; i < 2; i++) {
		write_table(damaged[i]);
		assert_int_equal(exit_status(resume, ""), 2);
		assert_int_equal(exit_status(resume, NULL), 3);
	}
}

// test that other files are refused
#define OWN "# seed: 1\n# sweep: s\n# complete: yes\nsize\tother\nsmall\t1\n"

static void resume_sweep(void *name)
{
	Table *t = open_table(1);
	table_meta(t, "sweep", "%s", (char *)name);
	exit(3 + table_resume(t, true));
}

static void other_files_are_refused(void **state)
{
	static const char *const others[] = { "---\ntitle: x\n", "\n",
		"# build.mk: rules\nall:\n", "# seed: 1\n# check: 0123456789abcdef\n",
		"# checksum: 0123456789abcdef", "# checksum: \n" };
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		write_file(others[i]);
		assert_int_equal(exit_status(resume, ""), 2);
		assert_string_equal(read_file(), others[i]);
		assert_int_equal(exit_status(resume, NULL), 3);
	}
	write_table(OWN);
	assert_int_equal(exit_status(resume_sweep, "other"), 2);
	assert_int_equal(exit_status(resume_sweep, "s"), 3);
	write_table("# program: p\n" HEAD);
	assert_int_equal(exit_status(resume, ""), 2);
	write_table("# complete: yes\nsize\tother\n");
	assert_int_equal(exit_status(resume, ""), 2);
	write_file("");
	assert_int_equal(exit_status(resume, ""), 3);
	remove(path);
	assert_int_equal(symlink(path, path), 0);
	assert_int_equal(exit_status(resume, ""), 2);
	remove(path);
}

static void append(void *unused)
{
	Table *t = open_table(1);
	table_append(t, "small\t128\tfwd_ms=1.5\tstatus=ok\n");
}

static void one_program_writes_a_table(void **state)
{
	remove(path);
	Table *first = open_table(1), *second = open_table(1);
	table_append(first, "small\t128\tfwd_ms=1.5\tstatus=ok\n");
	assert_int_equal(exit_status(resume, ""), 2);
	assert_int_equal(exit_status(append, NULL), 2);
	table_append(first, "small\t256\tfwd_ms=1.5\tstatus=ok\n");
	table_close(first, true);
	assert_int_equal(exit_status(resume, ""), 5);
	assert_int_equal(table_resume(second, true), 2);
	table_close(second, false);
}

// set a key in a row
static void append_a_key(void *unused)
{
	Table *t = open_table(2);
	table_append(t, "small\t128\tcontext=256\tstatus=ok\n");
}

// test that rows bring their columns
static void rows_bring_columns(void **state)
{
	remove(path);
	Table *t = open_table(1);
	table_append(t, "small\t1\tstatus=oom: a = b\n");
	assert_non_null(strstr(read_file(), "no\nsize\tcontext\tstatus\n"
		"small\t1\toom: a = b\n"));
	table_append(t, "small\t2\tfwd_ms=1\tloss=3\tstatus=ok\n");
	table_append(t, "small\t3\tfwd_ms=4\tbwd_ms=5\tloss=-\tstatus=ok\n");
	table_close(t, false);
	t = open_table(1);
	assert_int_equal(table_resume(t, true), 3);
	table_append(t, "small\t4\tloss=6\tpeak_MiB=7\tfwd_ms=8\tstatus=ok\n");
	table_close(t, true);
	assert_non_null(strstr(read_file(), "yes\n"
		"size\tcontext\tfwd_ms\tbwd_ms\tloss\tpeak_MiB\tstatus\n"
		"small\t1\t-\t-\t-\t-\toom: a = b\n"
		"small\t2\t1\t-\t3\t-\tok\n"
		"small\t3\t4\t5\t-\t-\tok\n"
		"small\t4\t8\t-\t6\t7\tok\n"));
	assert_int_equal(exit_status(append_a_key, NULL), 1);
}

// test what a terminal shows
static char *shown_on(int terminal, int columns, bool wide)
{
	static char text[4096];
	int ends[2], screen = posix_openpt(O_RDWR | O_NOCTTY);
	assert_true(grantpt(screen) == 0 && unlockpt(screen) == 0);
	ends[0] = screen, ends[1] = open(ptsname(screen), O_RDWR | O_NOCTTY);
	ioctl(screen, TIOCSWINSZ, &(struct winsize){ .ws_col = columns });
	if (!terminal)
		assert_int_equal(pipe(ends), 0);
	fflush(stdout);
	int kept = dup(STDOUT_FILENO);
	dup2(ends[1], STDOUT_FILENO);
	Table *t = table_new(NULL, "size context status", 2);
	table_append(t, "small\t128\tlayers=12\tfwd_ms=1.5\tfwd_sd_ms=0.1\t"
		"bwd_ms=2.5\topt_ms=-\tstep_ms=4.0\tstatus=ok\n");
	table_append(t, "xl\t128\tlayers=48\tstatus=oom: it needs 1000 MiB\n");
	if (wide)
		table_wide(t);
	table_close(t, true);
	fflush(stdout);
	dup2(kept, STDOUT_FILENO);
	close(kept), close(ends[1]);
	size_t n = 0;                   /* a terminal hands over a part at a time */
	for (ssize_t got = 1; got > 0; n += got > 0 ? got : 0)
		got = read(ends[0], text + n, sizeof text - 1 - n);
	text[n] = '\0';
	close(ends[0]), close(screen);
	return text;
}

static void terminals_get_what_fits(void **state)
{
	assert_string_equal(shown_on(true, 39, false),
		" size  context  fwd_ms  bwd_ms  status\r\n"
		"small      128     1.5     2.5      ok\r\n"
		"   xl      128       -       -  oom: it needs 1000 MiB\r\n"
		"# 4 of 9 columns are not shown (--wide: all)\r\n");
	assert_non_null(strstr(shown_on(true, 1, false), "\nsmall      ok\r\n"));
	assert_non_null(strstr(shown_on(true, 56, false),
		"  fwd_ms  bwd_ms  step_ms  status\r\n"));
	const char *const all = "layers  fwd_ms  fwd_sd_ms  bwd_ms  opt_ms";
	assert_null(strstr(shown_on(true, 73, false), all));
	assert_non_null(strstr(shown_on(true, 0, false), all));
	assert_non_null(strstr(shown_on(true, 200, false), all));
	assert_non_null(strstr(shown_on(true, 39, true), all));
	const char *text = shown_on(false, 39, false);
	assert_true(strstr(text, all) && strstr(text, "                 status\n"));
}

// run the tests of tables in a folder of their own
int main(void)
{
	if (make_folder(NULL) != 0)
		return 1;
	snprintf(path, sizeof path, "%s/deep/t.tsv", folder);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unfinished_run_is_resumed),
		cmocka_unit_test(rows_bring_columns),
		cmocka_unit_test(damaged_tables_are_refused),
		cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(one_program_writes_a_table),
		cmocka_unit_test(terminals_get_what_fits),
	};
	return cmocka_run_group_tests(tests, NULL, remove_folder);
}
