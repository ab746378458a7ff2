#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/base/exits.h"
#include "tests/base/program.h"
#include "tests/bench/trial.h"

static char count_path[64];

// an experiment with every outcome
typedef struct OutcomeConfig { int outcome; } OutcomeConfig;
#define OUTCOMES_OF(FIRST, NEXT) \
	FIRST(WORKS, "works") NEXT(NO_MEMORY, "no memory") \
	NEXT(CRASHES, "crashes") NEXT(THREE_ROWS, "three rows")
enum { CHOICE_IDS(OUTCOMES_OF) NOUTCOMES };
static const Key outcome_keys[] = { KEY(OutcomeConfig, outcome,
	CHOICES(OUTCOMES_OF)), { 0 } };
static int crash;

static void plan(Plan *p)
{
	for (int i = 0; i < NOUTCOMES; i++)
		plan_add(p, &(OutcomeConfig){ i });
}

static void run_out_of_memory(void)
{
	device_alloc(harness_device(), (size_t)1 << 50, MEM_TEMPORARY,
		"far too much");
}

static void run(Row *row, const void *config)
{
	int f = open(count_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (write(f, "x", 1) != 1)
		abort();
	close(f);
	// do what the configuration says
	switch (((const OutcomeConfig *)config)->outcome) {
	case WORKS:
		row_set(row, "x_ms", "%.1f", 1.5);
		break;
	case NO_MEMORY:
		run_out_of_memory();
		break;
	case CRASHES:
		if (crash)
			abort();
		break;
	case THREE_ROWS:
		for (int i = 0; i < 3; i++) {
			row_set(row, "x_ms", "%d", i);
			row_emit(row);
		}
	}
}

// a sweep with every kind of key
typedef struct Kinds {
	int unlisted;
	const char *text, *none;
	long integer;
	double real;
	bool on, off;
	int choice;
	enum { LEFT, RIGHT } side;
} Kinds;
static const Key kind_keys[] = { KEY(Kinds, text), KEY(Kinds, none),
	KEY(Kinds, choice, "a|bc|d"), KEY(Kinds, integer), KEY(Kinds, real, "%.3g"),
	KEY(Kinds, on), KEY(Kinds, off), KEY(Kinds, side, "left|right"), { 0 } };

static void plan_kinds(Plan *p)
{
	plan_add(p, &(Kinds){ 7, "t\ta\nb", "", -5, 1 / 3.0, true, false, 1,
		RIGHT });
}

static void run_kinds(Row *row, const void *config)
{
	const Kinds *k = config;
	row_set(row, "y", "%d %ld %.6f", k->unlisted, k->integer, k->real);
}

// a sweep of groups of ranks
typedef struct Group {
	long ranks;
	int fate;
} Group;
#define FATES_OF(FIRST, NEXT) \
	FIRST(WELL, "well") NEXT(OOM, "oom") NEXT(EXIT_3, "exit") \
	NEXT(SIGKILLED, "killed") NEXT(HANGS, "hangs") NEXT(NO_ROW, "no row")
enum { CHOICE_IDS(FATES_OF) NFATES };
static const Key group_keys[] = { KEY(Group, ranks),
	KEY(Group, fate, CHOICES(FATES_OF)), { 0 } };

static void plan_groups(Plan *p)
{
	for (long ranks = 1; ranks <= 4; ranks *= 2)
		for (int fate = 0; fate < NFATES; fate++)
			plan_add(p, &(Group){ ranks, fate });
}

static int ranks_of(const void *config)
{
	return (int)((const Group *)config)->ranks;
}

static void run_group(Row *row, const void *config)
{
	int fate = ((const Group *)config)->fate;
	row_set(row, "rank_of", "%d of %d", row->rank, row->ranks);
	if (fate == WELL || (fate == HANGS && row->rank + 1 < row->ranks))
		return;
	while (row->rank + 1 < row->ranks || fate == HANGS)
		pause();
	if (fate == OOM)
		run_out_of_memory();
	if (fate == SIGKILLED)
		raise(SIGKILL);
	exit(fate == EXIT_3 ? 3 : 0);
}

// a sweep of many rows a configuration
enum { CONFIGS = 6, ROWS = 100 };
typedef struct Many { long config; } Many;
static const Key many_keys[] = { KEY(Many, config), { 0 } };

static void plan_many(Plan *p)
{
	for (long i = 0; i < CONFIGS; i++)
		plan_add(p, &(Many){ i });
}

static void run_many(Row *row, const void *config)
{
	for (int i = 0; i < ROWS; i++) {
		row_set(row, "row", "%d", i);
		row_emit(row);
		if (i % 10 == 0)
			usleep(1000);
	}
}

// a sweep whose rows differ in their columns
typedef struct Grown { long config; } Grown;
static const Key grown_keys[] = { KEY(Grown, config), { 0 } };

static void plan_grown(Plan *p)
{
	for (long i = 0; i < 4; i++)
		plan_add(p, &(Grown){ i });
}

static void run_grown(Row *row, const void *config)
{
	long i = ((const Grown *)config)->config;
	if (i == 0)
		run_out_of_memory();
	row_set(row, "first", "%ld", i);
	if (i == 2 && crash)
		abort();
	if (i == 2)
		row_set(row, "second", "a=b");
	row_set(row, "third", i == 3 ? "-" : "%ld", 10 * i);
	if (i == 3)
		row_set(row, "fourth", "%s", "late");
}

// list the sweeps of the trial
static const Experiment trial = {
	.about = "a test",
	.sweeps = SWEEPS(
		{ "cases", outcome_keys, plan, run },
		{ "kinds", kind_keys, plan_kinds, run_kinds },
		{ "groups", group_keys, plan_groups, run_group,
			.ranks = ranks_of, .limit_s = 1 },
		{ "many", many_keys, plan_many, run_many },
		{ "grown", grown_keys, plan_grown, run_grown }),
};

// count how often it ran
static int runs_so_far(void)
{
	struct stat s;
	return stat(count_path, &s) == 0 ? (int)s.st_size : 0;
}

// test the outcomes
static void every_outcome_has_its_row(void **state)
{
	crash = 1;
	assert_int_equal(run_trial(&trial, "cases"), 1);
	char *text = read_file(table_path);
	assert_non_null(strstr(text,
		"# complete: no\noutcome\tx_ms\tstatus\nworks\t1.5\tok\n"
		"no memory\t-\toom: far too much needs"));
	assert_non_null(strstr(text, "MiB free\nthree rows\t0\tok\n"
		"three rows\t1\tok\nthree rows\t2\tok\n"));
	assert_null(strstr(text, "\ncrashes\t"));
	struct stat s;
	assert_true(stat(table_path, &s) == 0 && s.st_mtime == 0);
}

static void finished_rows_are_kept(void **state)
{
	crash = 0;
	int before = runs_so_far();
	assert_int_equal(run_trial(&trial, "cases"), 0);
	assert_int_equal(runs_so_far(), before + 1);
	assert_non_null(strstr(read_file(table_path), "# complete: yes\n"));
	assert_non_null(strstr(read_file(table_path), "\ncrashes\t-\tok\n"));
	assert_int_equal(run_trial(&trial, "cases"), 0);
	assert_int_equal(runs_so_far(), before + 1);
}

static void keys_are_written_by_kind(void **state)
{
	assert_int_equal(run_trial(&trial, "kinds"), 0);
	assert_non_null(strstr(read_file(table_path),
		"\ntext\tnone\tchoice\tinteger\treal\ton\toff\tside\ty\tstatus\n"
		"t a b\t-\tbc\t-5\t0.333\tyes\tno\tright\t7 -5 0.333333\tok\n"));
}

static void run_with(void *argument)
{
	char *argv[] = { "trial", argument, NULL };
	harness_main(&trial, 2, argv);
}

static void run_other_sweep(void *argv)
{
	harness_main(&trial, 4, argv);
}

static void sweeps_have_their_columns(void **state)
{
	char *argv[] = { "trial", "--sweep=kinds", "--out", table_path, "--force",
		NULL };
	assert_int_equal(exit_status(run_other_sweep, argv), 2);
	assert_non_null(strstr(read_file(table_path), "\ncrashes\t-\tok\n"));
	assert_int_equal(harness_main(&trial, 5, argv), 0);
	assert_non_null(strstr(read_file(table_path), "\nt a b\t-\tbc\t"));
}

static void bad_options_exit_2(void **state)
{
	assert_int_equal(exit_status(run_with, "--speed"), 2);
	assert_int_equal(exit_status(run_with, "--sweep=none"), 2);
	assert_int_equal(exit_status(run_with, "--device=tpu"), 2);
	assert_int_equal(exit_status(run_with, "--out=/proc/x/y.tsv"), 2);
	assert_int_equal(exit_status(run_with, "--out=/tmp"), 2);
	assert_int_equal(exit_status(run_with, "stray"), 2);
}

// test that a table grows columns
static void columns_come_with_rows(void **state)
{
	unlink(table_path);
	crash = 1;
	assert_int_equal(run_silently(&trial, "grown"), 1);
	expect(table_path, "no\nconfig\tfirst\tthird\tfourth\tstatus\n"
		"0\t-\t-\t-\toom: far too much");
	crash = 0;
	assert_int_equal(run_trial(&trial, "grown"), 0);
	expect(table_path, "yes\nconfig\tfirst\tsecond\tthird\tfourth\tstatus\n"
		"0\t-\t-\t-\t-\toom: far too much");
	expect(table_path, "\n1\t1\t-\t10\t-\tok\n3\t3\t-\t-\tlate\tok\n"
		"2\t2\ta=b\t20\t-\tok\n");
	unlink(table_path);
	assert_int_equal(run_trial(&trial, "grown"), 0);
	expect(table_path, "yes\nconfig\tfirst\tsecond\tthird\tfourth\tstatus\n"
		"0\t-\t-\t-\t-\toom: far too much");
	expect(table_path, "\n1\t1\t-\t10\t-\tok\n2\t2\ta=b\t20\t-\tok\n"
		"3\t3\t-\t-\tlate\tok\n");
	unlink(table_path);
}

// test groups of ranks
static void expect_group(long ranks)
{
	char rank[32] = "";
	if (ranks > 1)
		snprintf(rank, sizeof rank, "rank %ld: ", ranks - 1);
	expect(table_path, "\n%ld\twell\t0 of %ld\tok\n", ranks, ranks);
	expect(table_path, "\n%ld\toom\t%ld of %ld\toom: %sfar too much needs",
		ranks, ranks - 1, ranks, rank);
	if (ranks == 1)
		expect(table_path,
			"\n1\tkilled\t-\toom: the kernel ended the process\n");
	else
		expect(said_path, "'%ld killed' failed (%ssignal 9)\n", ranks, rank);
	expect(said_path, "'%ld exit' failed (%sexit status 3)\n", ranks, rank);
	expect(said_path, "'%ld hangs' failed (%smore than 1 s)\n", ranks, rank);
	expect(said_path, "'%ld no row' failed (%sno row)\n", ranks, rank);
}

static void groups_end_together(void **state)
{
	unlink(table_path);
	assert_int_equal(run_silently(&trial, "groups"), 1);
	assert_true(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	for (long ranks = 1; ranks <= 4; ranks *= 2)
		expect_group(ranks);
	int rows = 0;
	for (char *c = read_file(table_path); (c = strchr(c, '\n')); c++)
		rows += c[1] >= '1' && c[1] <= '4';
	assert_int_equal(rows, 3 + 2 + 2);
}

// test that a configuration has all of its rows or none
static char *without_date(const char *text)
{
	char *kept = strdup(text), *date = strstr(kept, "# date: "),
		*sum = strstr(kept, "# checksum: ");
	if (date)
		memset(date, '-', strcspn(date, "\n"));
	if (sum)
		memset(sum, '-', strcspn(sum, "\n"));
	return kept;
}

/* returns whether all are there */
static bool expect_whole(const char *text)
{
	int rows[CONFIGS] = { 0 }, all = 0;
	for (const char *c = strchr(text, '\n'); c; c = strchr(c + 1, '\n'))
		if (c[1] >= '0' && c[1] < '0' + CONFIGS)
			rows[c[1] - '0']++;
	for (int i = 0; i < CONFIGS; i++) {
		if (rows[i] != 0 && rows[i] != ROWS)
			fail_msg("configuration %d has %d rows of %d", i, rows[i], ROWS);
		all += rows[i];
	}
	return all == CONFIGS * ROWS && strstr(text, "# complete: yes");
}

static void killed_runs_are_resumed(void **state)
{
	unlink(table_path);
	assert_int_equal(run_trial(&trial, "many"), 0);
	char *undisturbed = without_date(read_file(table_path));
	unlink(table_path);
	bool whole = false;
	int killed = 0;
	// kill and resume until the table is whole
	for (long ms = 3; !whole; ms += 4) {
		fflush(NULL);
		pid_t child = fork();
		if (child == 0)
			_exit(run_trial(&trial, "many"));
		for (double end = clock_ms() + ms; clock_ms() < end && !whole;)
			whole = expect_whole(read_file(table_path));
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		whole = expect_whole(read_file(table_path));
		killed += !whole;
	}
	char *resumed = without_date(read_file(table_path));
	assert_string_equal(resumed, undisturbed);
	assert_true(killed >= 3);
	free(resumed);
	free(undisturbed);
}

// test that a configuration has all of its rows or none
static void run_in_little_room(void *nbytes)
{
	rlim_t most = *(const rlim_t *)nbytes;
	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){ most, most }) != 0)
		abort();
	exit(run_trial(&trial, "many"));
}

static void full_disks_keep_whole_configurations(void **state)
{
	char pattern[80];
	glob_t left;
	unlink(table_path);
	snprintf(pattern, sizeof pattern, "%s/t.tsv.*", folder);
	for (rlim_t most = 100; most < 4000; most += 700) {
		assert_int_equal(exit_status(run_in_little_room, &most), 1);
		assert_false(expect_whole(read_file(table_path)));
		assert_int_equal(glob(pattern, 0, NULL, &left), GLOB_NOMATCH);
	}
	assert_int_equal(run_trial(&trial, "many"), 0);
	assert_true(expect_whole(read_file(table_path)));
}

static int name_count(void **state)
{
	int failed = name_files(state);
	snprintf(count_path, sizeof count_path, "%s/count", folder);
	return failed;
}

TESTS_BETWEEN(name_count, remove_folder,
	cmocka_unit_test(columns_come_with_rows),
	cmocka_unit_test(every_outcome_has_its_row),
	cmocka_unit_test(finished_rows_are_kept),
	cmocka_unit_test(sweeps_have_their_columns),
	cmocka_unit_test(keys_are_written_by_kind),
	cmocka_unit_test(bad_options_exit_2),
	cmocka_unit_test(groups_end_together),
	cmocka_unit_test(killed_runs_are_resumed),
	cmocka_unit_test(full_disks_keep_whole_configurations))
