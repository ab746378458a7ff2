#define _GNU_SOURCE
#include <errno.h>
#include <omp.h>
#include <signal.h>
#include <sys/wait.h>

#include "dist/comm.h"
#include "tests/base/program.h"
#include "tests/bench/trial.h"

// a sweep of sums over ranks
typedef struct RanksCase {
	long ranks;
	const char *transport, *type;
	int fate;
} RanksCase;
#define FATES_OF(FIRST, NEXT) \
	FIRST(NONE, "none") NEXT(LEAVES, "leaves") NEXT(IN, "in") \
	NEXT(STOPPED, "stopped") NEXT(RUNS_OUT, "runs out") \
	NEXT(KILLED_OUTSIDE, "killed") NEXT(SPINS, "spins")
#define FATES CHOICES(FATES_OF)
enum { CHOICE_IDS(FATES_OF) NFATES };
enum { ROUNDS = 20, NUMBERS = 1001 };
static const Key sum_keys[] = { KEY(RanksCase, ranks), KEY(RanksCase, transport),
	KEY(RanksCase, type), { 0 } };

static void plan_sums(Plan *p)
{
	static const char *const types[] = { "fp32", "bf16" },
		*const transports[] = { "ring", "mpi" };
	int rank, ranks, ways = link_launched(&rank, &ranks) ? 2 : 1;
	for (long n = 1; n <= 4; n++)
		for (int t = 0; t < 2; t++)
			for (int way = 0; way < ways; way++)
				plan_add(p, &(RanksCase){ n, transports[way], types[t], 0 });
}

static int ranks_of(const void *config)
{
	return (int)((const RanksCase *)config)->ranks;
}

/* rank r has (r + 1) (i % 7 + round % 5) at i: small, and exact in bf16 */
static void write_numbers(Device *d, Array x, int rank, int round)
{
	real numbers[NUMBERS];
	for (int i = 0; i < NUMBERS; i++)
		numbers[i] = (real)((rank + 1) * (i % 7 + round % 5));
	array_write(d, x, numbers, NUMBERS);
	device_wait(d, COMM, device_event(d, COMPUTE));
}

static double sum_up(Device *d, Array x, Event event)
{
	real numbers[NUMBERS];
	double sum = 0;
	device_wait(d, COMPUTE, event);
	array_read(d, numbers, x, NUMBERS);
	for (int i = 0; i < NUMBERS; i++)
		sum += numbers[i];
	return sum;
}

static double reduce(Comm *c, Device *d, Array x, int round)
{
	write_numbers(d, x, comm_rank(c), round);
	return sum_up(d, x, comm_all_reduce(c, x, NUMBERS, "round", round));
}

static double scatter_and_gather(Comm *c, Device *d, Array x, int round)
{
	write_numbers(d, x, comm_rank(c), round);
	comm_reduce_scatter(c, x, NUMBERS, "round", round);
	return sum_up(d, x, comm_all_gather(c, x, NUMBERS, "round", round));
}

static double broadcast(Comm *c, Device *d, Array x, int round)
{
	int last = comm_ranks(c) - 1;
	if (comm_rank(c) != last)
		write_numbers(d, x, comm_rank(c), round + 1);
	return sum_up(d, x, comm_broadcast(c, x, NUMBERS, last, "round", round));
}

static void run_sums(Row *row, const void *config)
{
	const RanksCase *k = config;
	double sums[3] = { 0 };
	Device *d = harness_device();
	Comm *c = harness_comm(row, d, &(CommSettings){ .transport = k->transport });
	Array x = comm_array(c, NUMBERS, *k->type == 'f' ? FP32 : BF16,
		MEM_TEMPORARY, "numbers");
	for (int i = 0; i < ROUNDS; i++) {
		sums[0] += reduce(c, d, x, i);
		sums[1] += scatter_and_gather(c, d, x, i);
		sums[2] += broadcast(c, d, x, i);
	}
	row_set(row, "reduced", "%.0f", comm_max(c, sums[0]));
	row_set(row, "scattered", "%.0f", -comm_max(c, -sums[1]));
	row_set(row, "broadcast", "%.0f", comm_sum(c, sums[2]) / row->ranks);
	row_set(row, "threads", "%d", omp_get_max_threads());
	comm_close(&c);
	device_close(&d);
}

// a sweep of ranks that are lost
static const Key fate_keys[] = { KEY(RanksCase, ranks),
	KEY(RanksCase, fate, FATES), { 0 } };
static int one_fate;
static const Option options[] = { { "fate", OPT_CHOICE, &one_fate, FATES,
	"besides none; none: all" }, { 0 } };

static void plan_fates(Plan *p)
{
	for (int fate = 0; fate < NFATES; fate++)
		if (fate == NONE || one_fate == NONE || fate == one_fate)
			plan_add(p, &(RanksCase){ 3, "ring", "fp32", fate });
}

static void suffer_fate(int fate, Device *d)
{
	switch (fate) {
	case LEAVES: exit(0);
	case IN: usleep(200000); raise(SIGKILL); break;
	case STOPPED: raise(SIGSTOP); break;
	case RUNS_OUT:
		device_alloc(d, (size_t)1 << 50, MEM_TEMPORARY, "far too much");
		break;
	case KILLED_OUTSIDE: raise(SIGKILL); break;
	case SPINS: pause();
	}
}

static void run_fates(Row *row, const void *config)
{
	int fate = ((const RanksCase *)config)->fate;
	bool limited = fate == STOPPED || fate == SPINS,
		last = row->rank + 1 == row->ranks;
	Device *d = harness_device();
	Comm *c = harness_comm(row, d, &(CommSettings){ .limit_s = limited });
	Array x = comm_array(c, NUMBERS, FP32, MEM_TEMPORARY, "numbers");
	// sum, and meet the fate half-way through
	for (int i = 0; i < ROUNDS; i++) {
		bool now = fate != NONE && i == ROUNDS / 2;
		if (now && fate == IN && last)
			comm_all_reduce(c, x, NUMBERS, "round", i);
		if (now && last)
			suffer_fate(fate, d);
		while (now && fate == IN)
			pause();
		row_set(row, "sum", "%.0f", reduce(c, d, x, i));
	}
	comm_close(&c);
	device_close(&d);
}

static const Experiment trial = {
	.about = "a test", .options = options,
	.sweeps = SWEEPS(
		{ "sums", sum_keys, plan_sums, run_sums, .ranks = ranks_of },
		{ "fates", fate_keys, plan_fates, run_fates, .ranks = ranks_of }),
};

// test sums over ranks
static double sum_of(int ranks)
{
	double own = 0;
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < NUMBERS; i++)
			own += i % 7 + round % 5;
	return own * ranks * (ranks + 1) / 2;
}

static void ranks_meet(void **state)
{
	assert_int_equal(run_trial(&trial, "sums"), 0);
	for (int ranks = 1, all = omp_get_num_procs(); ranks <= 4; ranks++) {
		double sum = sum_of(ranks);
		for (int t = 0; t < 2; t++)
			expect(table_path, "\n%d\tring\t%s\t%.0f\t%.0f\t%.0f\t%d\tok\n",
				ranks, t ? "bf16" : "fp32", sum, sum, sum,
				all < ranks ? 1 : all / ranks);
	}
	expect(table_path, "# complete: yes\n");
}

// test that lost ranks are named
static void lost_ranks_are_named(void **state)
{
	static const char *const how[NFATES] = {
		[LEAVES] = "leaves' failed (rank 2: no row",
		[IN] = "in' failed (rank 2: signal 9, in all-reduce 12 (round 10, ",
		[STOPPED] = "stopped' failed (rank 2: stopped by signal 19",
		[KILLED_OUTSIDE] = "killed' failed (rank 2: signal 9",
		[SPINS] = "spins' failed (rank 2: hangs" };
	unlink(table_path);
	assert_int_equal(run_silently(&trial, "fates"), 1);
	assert_true(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	for (int fate = 0; fate < NFATES; fate++)
		if (how[fate])
			expect(said_path, "the configuration '3 %s", how[fate]);
	expect(table_path, "\n3\tnone\t42042\tok\n3\truns out\t42042\toom: rank 2: "
		"far too much needs");
	expect(table_path, "# complete: no\n");
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return harness_main(&trial, argc, argv);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_meet),
		cmocka_unit_test(lost_ranks_are_named),
	};
	return cmocka_run_group_tests(tests, name_files, remove_folder);
}
