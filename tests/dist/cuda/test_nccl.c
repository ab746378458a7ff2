/* collectives between GPUs: NCCL, its windows, pushes by copy engines */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdint.h>
#include <math.h>
#include <unistd.h>

#include "base/error.h"
#include "base/random.h"
#include "dist/ring.h"
#include "ops/ops.h"
#include "tests/base/program.h"
#include "tests/dist/job.h"

// run a case on two GPUs or more
typedef struct NcclCase {
	const char *transport;
	int delay_us;
} NcclCase;

static NcclCase cases[] = {
#ifdef HAVE_NCCL
	{ "nccl", 0 }, { "symmetric", 0 }, { "symmetric", 2000 },
#endif
	{ "push", 0 }, { "push", 2000 },
};
enum { NCASES = sizeof cases / sizeof *cases };

static void on_gpus(Body *body)
{
	if (!have_gpus(2))
		skip();
	for (int ranks = 2; ranks <= MOST && have_gpus(ranks); ranks++)
		for (int i = 0; i < NCASES; i++)
			run_well(ranks, body, &cases[i]);
}

static Comm *join_case(const Place *p, Device **d)
{
	const NcclCase *k = p->context;
	return join(p, "cuda:", &(CommSettings){ .transport = k->transport,
		.limit_s = 60, .delay_us = k->delay_us }, d);
}

static void leave_in_order(Comm *c, Device *d)
{
	comm_barrier(c);
	comm_check_order(c);
	leave(c, d);
}

// compare arrays of a GPU with what they must hold
/* whole numbers whose sums bf16 holds */
static real element(int rank, size_t i, int turn)
{
	uint32_t mixed = ((uint32_t)i + 977u * (uint32_t)turn
		+ 7919u * (uint32_t)rank) * 2654435761u;
	return (real)(mixed >> 28) - 7;
}

/* rank < 0: NaN */
static void fill(Device *d, Array x, size_t begin, size_t end, int rank,
	int turn)
{
	real *host = need(malloc((end - begin + 1) * sizeof *host));
	for (size_t i = begin; i < end; i++)
		host[i - begin] = rank < 0 ? (real)NAN : element(rank, i, turn);
	array_write(d, array_part(d, x, begin), host, end - begin);
	free(host);
}

/* elements begin ... end - 1 hold what rank `of` filled in, or the sum over all
 * ranks if of < 0 */
static void expect(Comm *c, Device *d, const char *what, Array x, size_t begin,
	size_t end, int of, int turn)
{
	real *host = need(malloc((end - begin + 1) * sizeof *host));
	array_read(d, host, array_part(d, x, begin), end - begin);
	// compare each element
	for (size_t i = begin; i < end; i++) {
		real want = 0;
		for (int r = 0; r < comm_ranks(c); r++)
			want += of < 0 || of == r ? element(r, i, turn) : 0;
		if (!(host[i - begin] == want))
			die("turn %d: %s, rank %d of %d: element %zu of %zu to %zu is %g, "
				"not %g", turn, what, comm_rank(c), comm_ranks(c), i, begin,
				end, (double)host[i - begin], (double)want);
	}
	free(host);
}

// mix collectives of all kinds and sizes
static void try_all_reduce(Comm *c, Device *d, Array x, size_t n, int turn)
{
	fill(d, x, 0, n, comm_rank(c), turn);
	device_wait(d, COMPUTE, comm_all_reduce(c, x, n, "sum", turn));
	expect(c, d, "all-reduce", x, 0, n, -1, turn);
}

static void try_reduce_scatter(Comm *c, Device *d, Array x, size_t n, int turn)
{
	size_t begin = shard_begin(n, comm_rank(c), comm_ranks(c)),
		end = shard_begin(n, comm_rank(c) + 1, comm_ranks(c));
	fill(d, x, 0, n, comm_rank(c), turn);
	device_wait(d, COMPUTE, comm_reduce_scatter(c, x, n, "shards", turn));
	expect(c, d, "reduce-scatter", x, begin, end, -1, turn);
}

static void try_all_gather(Comm *c, Device *d, Array x, size_t n, int turn)
{
	int rank = comm_rank(c), ranks = comm_ranks(c);
	fill(d, x, 0, n, -1, turn);
	fill(d, x, shard_begin(n, rank, ranks), shard_begin(n, rank + 1, ranks),
		rank, turn);
	device_wait(d, COMPUTE, comm_all_gather(c, x, n, "shards", turn));
	for (int r = 0; r < ranks; r++)
		expect(c, d, "all-gather", x, shard_begin(n, r, ranks),
			shard_begin(n, r + 1, ranks), r, turn);
}

static void try_broadcast(Comm *c, Device *d, Array x, size_t n, int turn)
{
	int root = turn % comm_ranks(c), rank = comm_rank(c);
	fill(d, x, 0, n, rank == root ? root : -1, turn);
	device_wait(d, COMPUTE, comm_broadcast(c, x, n, root, "weights", turn));
	expect(c, d, "broadcast", x, 0, n, root, turn);
}

static void try_message(Comm *c, Device *d, Array x, size_t n, int turn)
{
	int ranks = comm_ranks(c), from = turn % ranks, to = (from + 1) % ranks;
	fill(d, x, 0, n, comm_rank(c) == from ? from : -1, turn);
	if (comm_rank(c) == from)
		device_wait(d, COMPUTE, comm_send(c, x, n, to, "message", turn));
	if (comm_rank(c) == to) {
		device_wait(d, COMPUTE, comm_receive(c, x, n, from, "message", turn));
		expect(c, d, "message", x, 0, n, from, turn);
	}
}

typedef void Try(Comm *c, Device *d, Array x, size_t n, int turn);
static Try *const tries[] = { try_all_reduce, try_reduce_scatter,
	try_all_gather, try_broadcast, try_message };
enum { NTRIES = sizeof tries / sizeof *tries };

static void mix(const Place *p)
{
	enum { TURNS = 200, ROOM = 300000 };
	static const size_t sizes[] = { 1, 2, 3, 7, 1000, 4096, 4099, 65536, 100003,
		262144 };
	Device *d;
	Comm *c = join_case(p, &d);
	// do a collective of each turn
	Array x[] = { comm_array(c, ROOM, FP32, MEM_GRADIENT, "fp32"),
		comm_array(c, ROOM, BF16, MEM_GRADIENT, "bf16"),
		array_new(d, ROOM, FP32, MEM_GRADIENT, "other fp32"),
		array_new(d, ROOM, BF16, MEM_GRADIENT, "other bf16") };
	for (int turn = 0; turn < TURNS; turn++) {
		uint64_t bits = random_bits(7, 0, (uint64_t)turn);
		size_t n = sizes[bits % 10], offset = (bits >> 8) % 3 * 1024;
		if ((bits >> 16) % 2)
			offset += (bits >> 20) % 100;
		tries[(bits >> 32) % NTRIES](c, d,
			array_part(d, x[(bits >> 40) % 4], offset), n, turn);
	}
	comm_barrier(c);
	device_free(d, x[2].at);
	device_free(d, x[3].at);
	leave_in_order(c, d);
}

// mix collectives of all kinds and sizes
static void collectives_are_right(void **state)
{
	on_gpus(mix);
}

// queue many collectives without waiting
static void run_ahead(const Place *p)
{
	enum { MANY = 120, EACH = 30011 };
	Device *d;
	Comm *c = join_case(p, &d);
	Array x = comm_array(c, (size_t)MANY * EACH, BF16, MEM_GRADIENT, "x");
	for (int i = 0; i < MANY; i++)
		fill(d, array_part(d, x, (size_t)i * EACH), 0, EACH, p->rank, i);
	// queue sums and gathers without waiting
	for (int i = 0; i < MANY; i++) {
		Array part = array_part(d, x, (size_t)i * EACH);
		if (i % 3)
			comm_all_reduce(c, part, EACH, "part", i);
		else
			comm_reduce_scatter(c, part, EACH, "part", i);
		if (i % 3 == 0)
			comm_all_gather(c, part, EACH, "part", i);
	}
	device_wait(d, COMPUTE, device_event(d, COMM));
	for (int i = 0; i < MANY; i++)
		expect(c, d, "part", array_part(d, x, (size_t)i * EACH), 0, EACH, -1, i);
	leave_in_order(c, d);
}

// queue many collectives without waiting
static void queues_run_ahead(void **state)
{
	on_gpus(run_ahead);
}

// sum long arrays
static void sum_long(const Place *p)
{
	enum { LONG = 21000001 };
	Device *d;
	Comm *c = join_case(p, &d);
	Array x = comm_array(c, LONG, FP32, MEM_GRADIENT, "x");
	for (int turn = 0; turn < NTRIES; turn++)
		tries[turn](c, d, x, LONG, turn);
	leave_in_order(c, d);
}

static void long_arrays_are_right(void **state)
{
	on_gpus(sum_long);
}

// compare the bits of a sum
static real *host_sum(Type type, size_t n, int ranks)
{
	real *sum = need(calloc(n, sizeof *sum)), *x = need(calloc(n, sizeof *x));
	for (int r = 0; r < ranks; r++) {
		for (size_t i = 0; i < n; i++)
			x[i] = (real)random_normal(11, (uint64_t)r, i);
		round_array(type, x, n);
		for (size_t i = 0; i < n; i++)
			sum[i] = r == 0 ? x[i] : sum[i] + x[i];
	}
	round_array(type, sum, n);
	free(x);
	return sum;
}

static void compare_bits(Comm *c, Device *d, Type type, size_t n, int rank)
{
	Array x = comm_array(c, n, type, MEM_GRADIENT, "x");
	real *host = need(calloc(n, sizeof *host)),
		*want = host_sum(type, n, comm_ranks(c));
	for (size_t i = 0; i < n; i++)
		host[i] = (real)random_normal(11, (uint64_t)rank, i);
	array_write(d, x, host, n);
	device_wait(d, COMPUTE, comm_all_reduce(c, x, n, "x", 0));
	array_read(d, host, x, n);
	for (size_t i = 0; i < n; i++)
		if (memcmp(&host[i], &want[i], sizeof *host) != 0)
			die("%s: element %zu is %a, not %a", comm_transport(c), i,
				(double)host[i], (double)want[i]);
	free(host);
	free(want);
}

static void sum_bits(const Place *p)
{
	Device *d;
	Comm *c = join_case(p, &d);
	if (p->ranks == 2 || strcmp(comm_transport(c), "push") == 0)
		for (Type type = FP32; type <= BF16; type++) {
			compare_bits(c, d, type, 1001, p->rank);
			compare_bits(c, d, type, 262144, p->rank);
		}
	leave_in_order(c, d);
}

static void sums_have_equal_bits(void **state)
{
	on_gpus(sum_bits);
}

// exchange arrays where they are read
static void sleep_a_little(void *arg)
{
	usleep(2000);
}

/* adds turn * 8 + rank of all ranks to the sum. x.at NULL: by an exchange; else x
 * has n elements for each rank, and an all-to-all moves them */
static void add_turn(Comm *c, Device *d, const Gradients *parts, Array x,
	Array sum, size_t n, int turn)
{
	const Ops *ops = ops_for(d);
	int rank = comm_rank(c);
	Array own = array_part(d, parts->at[rank], turn % 2);
	size_t all = n * comm_ranks(c);
	ops->fill(d, x.at ? x : own, turn % 20 * 8 + rank, x.at ? all : n);
	device_wait(d, COMM, device_event(d, COMPUTE));
	device_wait(d, COMPUTE, x.at ? comm_all_to_all(c, x, all, own, "part", turn)
		: comm_exchange(c, own, n, "part", turn));
	if (turn % comm_ranks(c) == rank)
		device_call(d, COMPUTE, sleep_a_little, NULL);
	for (int r = 0; r < parts->n; r++)
		ops->add(d, sum, sum, array_part(d, parts->at[r], turn % 2), n);
}

static void exchange(const Place *p)
{
	enum { TURNS = 40, ROOM = 5000001 };
	Device *d;
	Comm *c = join_case(p, &d);
	real want = 0, *got = need(malloc(ROOM * sizeof *got));
	for (int turn = 0; turn < TURNS; turn++)
		for (int r = 0; r < p->ranks; r++)
			want += turn % 20 * 8 + r;
	// exchange for all turns, and compare the sums
	for (Type type = FP32; type <= BF16 && comm_exchanges(c); type++) {
		Gradients parts = comm_parts(c, ROOM + 1, type, MEM_GRADIENT, "parts");
		Array sum = array_new(d, ROOM, FP32, MEM_TEMPORARY, "sum"),
			x = array_new(d, (size_t)ROOM * p->ranks, type, MEM_TEMPORARY, "x");
		ops_for(d)->fill(d, sum, 0, ROOM);
		for (int turn = 0; turn < TURNS; turn++)
			add_turn(c, d, &parts, turn / 2 % 2 ? x : (Array){ NULL, type },
				sum, turn % 3 ? ROOM : ROOM - 1, turn);
		device_free(d, x.at);
		array_read(d, got, sum, ROOM);
		for (size_t i = 0; i < ROOM - 1; i++)
			if (!(got[i] == want))
				die("%s: element %zu is %g, not %g", type_names[type], i,
					(double)got[i], (double)want);
		device_free(d, sum.at);
	}
	free(got);
	leave_in_order(c, d);
}

// exchange arrays where they are read
static void exchanges_wait_for_readers(void **state)
{
	on_gpus(exchange);
}

TESTS(
	cmocka_unit_test(collectives_are_right),
	cmocka_unit_test(queues_run_ahead),
	cmocka_unit_test(long_arrays_are_right),
	cmocka_unit_test(sums_have_equal_bits),
	cmocka_unit_test(exchanges_wait_for_readers))
