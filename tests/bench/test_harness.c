#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "bench/harness.h"
#include "tests/base/exits.h"

static char folder[] = "/tmp/test_harness.XXXXXX", table_path[64],
	count_path[64], said_path[64];

typedef struct Outcome { int outcome; } Outcome;
enum { WORKS, NO_MEMORY, CRASHES, THREE_ROWS, NOUTCOMES };
static const Key outcome_keys[] = { KEY(Outcome, outcome,
	"works|no memory|crashes|three rows"), { 0 } };
static int crash;

static void plan(Plan *p)
{
	for (int i = 0; i < NOUTCOMES; i++)
		plan_add(p, &(Outcome){ i });
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
	switch (((const Outcome *)config)->outcome) {
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
typedef struct Group {
	long ranks;
	int fate;
} Group;
enum { WELL, OOM, EXIT_3, SIGKILLED, HANGS, NO_ROW, NFATES };
static const Key group_keys[] = { KEY(Group, ranks), KEY(Group, fate,
	"well|oom|exit|killed|hangs|no row"), { 0 } };

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
enum { LEAVES, IN, STOPPED, RUNS_OUT, KILLED_OUTSIDE, SPINS, SUMS };
enum { ROUNDS = 20, NUMBERS = 1000 };
static const Key collective_keys[] = { KEY(Group, ranks), KEY(Group, fate,
	"leaves|in|stopped|runs out|killed|spins|sums"), { 0 } };

static void plan_collectives(Plan *p)
{
	for (long ranks = 1; ranks <= 4; ranks++)
		plan_add(p, &(Group){ ranks, SUMS });
	for (int fate = 0; fate < SUMS; fate++)
		plan_add(p, &(Group){ 3, fate });
}

static void meet(int fate)
{
	switch (fate) {
	case LEAVES: exit(0);
	case IN: usleep(200000); raise(SIGKILL); break;
	case STOPPED: raise(SIGSTOP); break;
	case RUNS_OUT: run_out_of_memory(); break;
	case KILLED_OUTSIDE: raise(SIGKILL); break;
	case SPINS: pause();
	}
}

/* of all ranks' numbers; they are small and exact */
static double sum_numbers(Comm *c, Device *d, Array x, int round)
{
	real numbers[NUMBERS], sum = 0;
	for (int i = 0; i < NUMBERS; i++)
		numbers[i] = (real)((comm_rank(c) + 1) * (i % 7 + round));
	array_write(d, x, numbers, NUMBERS);
	device_wait(d, COMM, device_event(d, COMPUTE));
	device_wait(d, COMPUTE, comm_all_reduce(c, x, NUMBERS, "round", round));
	array_read(d, numbers, x, NUMBERS);
	for (int i = 0; i < NUMBERS; i++)
		sum += numbers[i];
	return sum;
}

static void run_collectives(Row *row, const void *config)
{
	int fate = ((const Group *)config)->fate;
	bool limited = fate == STOPPED || fate == SPINS,
		last = row->rank + 1 == row->ranks;
	double sum = 0;
	Device *d = harness_device();
	Comm *c = harness_comm(row, d, &(CommSettings){ .limit_s = limited });
	Array x = comm_array(c, NUMBERS, FP32, MEM_TEMPORARY, "numbers");
	for (int i = 0; i < ROUNDS; i++) {
		bool now = fate != SUMS && i == ROUNDS / 2;
		if (now && fate == IN && last)
			comm_all_reduce(c, x, NUMBERS, "round", i);
		if (now && last)
			meet(fate);
		while (now && fate == IN)
			pause();
		sum += sum_numbers(c, d, x, i);
	}
	row_set(row, "sum", "%.0f", sum);
	row_set(row, "threads", "%d", omp_get_max_threads());
	comm_close(&c);
	device_close(&d);
}
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
	(void)config;
	for (int i = 0; i < ROWS; i++) {
		row_set(row, "row", "%d", i);
		row_emit(row);
		if (i % 10 == 0)
			usleep(1000);
	}
}
static const Sweep sweeps[] = {
	{ .name = "cases", .keys = outcome_keys,
		.values = "x_ms", .plan = plan, .run = run },
	{ .name = "kinds", .keys = kind_keys,
		.values = "y", .plan = plan_kinds, .run = run_kinds },
	{ .name = "groups", .keys = group_keys,
		.values = "rank_of", .plan = plan_groups, .run = run_group,
		.ranks = ranks_of, .limit_s = 1 },
	{ .name = "collectives", .keys = collective_keys,
		.values = "sum threads", .plan = plan_collectives,
		.run = run_collectives, .ranks = ranks_of },
	{ .name = "many", .keys = many_keys,
		.values = "row", .plan = plan_many, .run = run_many },
	{ 0 }
};

static const Experiment trial = {
	.name = "trial", .about = "a test", .sweeps = sweeps,
};
static int run_trial(const char *sweep)
{
	char *argv[] = { "trial", "--sweep", (char *)sweep, "--out", table_path,
		"--device=cpu", NULL };
	fflush(NULL);
	return harness_main(&trial, 6, argv);
}

static int runs_so_far(void)
{
	struct stat s;
	return stat(count_path, &s) == 0 ? (int)s.st_size : 0;
}

static char *read_file(const char *path)
{
	static char text[1 << 16];
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
	text[n] = '\0';
	if (f)
		fclose(f);
	return text;
}
static void every_outcome_has_its_row(void **state)
{
	(void)state;
	crash = 1;
	assert_int_equal(run_trial("cases"), 1);
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
	(void)state;
	crash = 0;
	int before = runs_so_far();
	assert_int_equal(run_trial("cases"), 0);
	assert_int_equal(runs_so_far(), before + 1);
	assert_non_null(strstr(read_file(table_path), "# complete: yes\n"));
	assert_non_null(strstr(read_file(table_path), "\ncrashes\t-\tok\n"));
	assert_int_equal(run_trial("cases"), 0);
	assert_int_equal(runs_so_far(), before + 1);
}

static void keys_are_written_by_kind(void **state)
{
	(void)state;
	assert_int_equal(run_trial("kinds"), 0);
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
	(void)state;
	char *argv[] = { "trial", "--sweep=kinds", "--out", table_path, "--force",
		NULL };
	assert_int_equal(exit_status(run_other_sweep, argv), 2);
	assert_non_null(strstr(read_file(table_path), "\ncrashes\t-\tok\n"));
	assert_int_equal(harness_main(&trial, 5, argv), 0);
	assert_non_null(strstr(read_file(table_path), "\nt a b\t-\tbc\t"));
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
static int run_silently(const char *sweep)
{
	int kept = dup(STDERR_FILENO),
		said = open(said_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	dup2(said, STDERR_FILENO);
	int status = run_trial(sweep);
	dup2(kept, STDERR_FILENO);
	close(kept);
	close(said);
	return status;
}

static void expect(const char *path, const char *format, ...)
{
	char wanted[128];
	va_list args;
	va_start(args, format);
	vsnprintf(wanted, sizeof wanted, format, args);
	va_end(args);
	if (strstr(read_file(path), wanted) == NULL)
		fail_msg("'%s' is not in\n%s", wanted, read_file(path));
}

static void expect_group(long ranks)
{
	char rank[24] = "";
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
	(void)state;
	unlink(table_path);
	assert_int_equal(run_silently("groups"), 1);
	assert_true(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	for (long ranks = 1; ranks <= 4; ranks *= 2)
		expect_group(ranks);
	int rows = 0;
	for (char *c = read_file(table_path); (c = strchr(c, '\n')); c++)
		rows += c[1] >= '1' && c[1] <= '4';
	assert_int_equal(rows, 3 + 2 + 2);
}
static double sum_of(int ranks)
{
	double own = 0;
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < NUMBERS; i++)
			own += i % 7 + round;
	return own * ranks * (ranks + 1) / 2;
}

static void lost_ranks_are_named(void **state)
{
	static const char *const how[] = { [LEAVES] = "no row",
		[IN] = "signal 9, in all-reduce 12 (round 10, 0.004 MB)",
		[STOPPED] = "stopped by signal 19", [KILLED_OUTSIDE] = "signal 9",
		[SPINS] = "hangs" };
	static const char *const fates[] = { "leaves", "in", "stopped", "",
		"killed", "spins" };
	(void)state;
	unlink(table_path);
	assert_int_equal(run_silently("collectives"), 1);
	assert_true(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	for (int ranks = 1, all = omp_get_num_procs(); ranks <= 4; ranks++)
		expect(table_path, "\n%d\tsums\t%.0f\t%d\tok\n", ranks, sum_of(ranks),
			all < ranks ? 1 : all / ranks);
	for (int fate = 0; fate < SUMS; fate++)
		if (how[fate])
			expect(said_path, "'3 %s' failed (rank 2: %s", fates[fate],
				how[fate]);
	expect(table_path, "\n3\truns out\t-\t-\toom: rank 2: far too much needs");
	expect(table_path, "# complete: no\n");
}
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

static long now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void killed_runs_are_resumed(void **state)
{
	(void)state;
	unlink(table_path);
	assert_int_equal(run_trial("many"), 0);
	char *undisturbed = without_date(read_file(table_path));
	unlink(table_path);
	bool whole = false;
	int killed = 0;
	for (long ms = 3; !whole; ms += 4) {
		fflush(NULL);
		pid_t child = fork();
		if (child == 0)
			_exit(run_trial("many"));
		for (long end = now_ms() + ms; now_ms() < end && !whole;)
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
static void run_in_little_room(void *nbytes)
{
	rlim_t most = *(const rlim_t *)nbytes;
	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){ most, most }) != 0)
		abort();
	exit(run_trial("many"));
}

static void full_disks_keep_whole_configurations(void **state)
{
	(void)state;
	char pattern[80];
	glob_t left;
	unlink(table_path);
	snprintf(pattern, sizeof pattern, "%s/t.tsv.*", folder);
	for (rlim_t most = 100; most < 4000; most += 700) {
		assert_int_equal(exit_status(run_in_little_room, &most), 1);
		assert_false(expect_whole(read_file(table_path)));
		assert_int_equal(glob(pattern, 0, NULL, &left), GLOB_NOMATCH);
	}
	assert_int_equal(run_trial("many"), 0);
	assert_true(expect_whole(read_file(table_path)));
}

int main(void)
{
	if (!mkdtemp(folder))
		return 1;
	snprintf(table_path, sizeof table_path, "%s/t.tsv", folder);
	snprintf(count_path, sizeof count_path, "%s/count", folder);
	snprintf(said_path, sizeof said_path, "%s/said", folder);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_outcome_has_its_row),
		cmocka_unit_test(finished_rows_are_kept),
		cmocka_unit_test(sweeps_have_their_columns),
		cmocka_unit_test(keys_are_written_by_kind),
		cmocka_unit_test(bad_options_exit_2),
		cmocka_unit_test(groups_end_together),
		cmocka_unit_test(lost_ranks_are_named),
		cmocka_unit_test(killed_runs_are_resumed),
		cmocka_unit_test(full_disks_keep_whole_configurations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
