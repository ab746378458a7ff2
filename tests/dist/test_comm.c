/* the queue of collectives: results, order, events, delays, poisoned memory */
#define _GNU_SOURCE
#include <stdbool.h>
#include <math.h>
#include <stdint.h>

#include "base/error.h"
#include "base/random.h"
#include "dist/ring.h"
#include "tests/base/program.h"
#include "tests/dist/job.h"

typedef struct CommCase {
	const char *transport;
	int delay_us;
} CommCase;

// open a communicator for a test
static Comm *join_case(const Place *p, Device **device, char *doing)
{
	const CommCase *k = p->context;
	return join(p, "cpu", &(CommSettings){ .transport = k ? k->transport : NULL,
		.limit_s = 20, .delay_us = k ? k->delay_us : 0, .doing = doing }, device);
}

/* small whole numbers */
static real element(int rank, size_t i, int turn)
{
	return (real)(random_bits((uint64_t)turn, (uint64_t)rank, i) % 15) - 7;
}

static void fill(Device *d, Array x, size_t n, int rank, int turn)
{
	real *host = need(malloc((n + 1) * sizeof *host));
	for (size_t i = 0; i < n; i++)
		host[i] = rank < 0 ? (real)NAN : element(rank, i, turn);
	array_write(d, x, host, n);
	free(host);
}

/* elements begin ... end - 1 hold what rank `of` filled in, or the sum over all
 * ranks if of < 0 */
static void expect(Comm *c, Device *d, const char *what, Array x, size_t begin,
	size_t end, int of, int turn)
{
	real *host = need(malloc((end + 1) * sizeof *host));
	array_read(d, host, x, end);
	for (size_t i = begin; i < end; i++) {
		real want = 0;
		for (int r = 0; r < comm_ranks(c); r++)
			want += of < 0 || of == r ? element(r, i, turn) : 0;
		if (!(host[i] == want))
			die("%s of %zu, rank %d of %d: element %zu is %g, not %g", what,
				end, comm_rank(c), comm_ranks(c), i, (double)host[i],
				(double)want);
	}
	free(host);
}

// test: every collective of the communicator
static void try_sums(Comm *c, Device *d, Array x, size_t n)
{
	int rank = comm_rank(c), ranks = comm_ranks(c);
	size_t begin = shard_begin(n, rank, ranks),
		end = shard_begin(n, rank + 1, ranks);
	fill(d, x, n, rank, 1);
	device_wait(d, COMPUTE, comm_all_reduce(c, x, n, "bucket", 1));
	expect(c, d, "all-reduce", x, 0, n, -1, 1);
	fill(d, x, n, rank, 2);
	device_wait(d, COMPUTE, comm_reduce_scatter(c, x, n, "bucket", 2));
	expect(c, d, "reduce-scatter", x, begin, end, -1, 2);
	fill(d, array_part(d, x, end), n - end, -1, 2);
	fill(d, x, begin, -1, 2);
	device_wait(d, COMPUTE, comm_all_gather(c, x, n, "bucket", 3));
	expect(c, d, "all-gather", x, 0, n, -1, 2);
}

static void try_copies(Comm *c, Device *d, Array x, size_t n)
{
	int rank = comm_rank(c), ranks = comm_ranks(c), root = ranks - 1;
	fill(d, x, n, rank == root ? rank : -1, 3);
	device_wait(d, COMPUTE, comm_broadcast(c, x, n, root, "weights", 0));
	expect(c, d, "broadcast", x, 0, n, root, 3);
	if (ranks == 1)
		return;
	fill(d, x, n, rank == 0 ? 0 : -1, 4);
	if (rank == 0)
		comm_send(c, x, n, root, "a message", 0);
	else if (rank == root) {
		device_wait(d, COMPUTE, comm_receive(c, x, n, 0, "a message", 0));
		expect(c, d, "message", x, 0, n, 0, 4);
	}
}

static void try_all(const Place *p)
{
	static const size_t sizes[] = { 1, 2, 3, 1000, 20011 };
	Device *d;
	Comm *c = join_case(p, &d, NULL);
	const CommCase *k = p->context;
	if (strcmp(comm_transport(c), k->transport) != 0)
		die("the transport is %s", comm_transport(c));
	// try all sizes in both types
	for (Type type = FP32; type <= BF16; type++)
		for (int i = 0; i < 5; i++) {
			Array x = array_new(d, sizes[i], type, MEM_GRADIENT, "x");
			try_sums(c, d, x, sizes[i]);
			try_copies(c, d, x, sizes[i]);
			comm_barrier(c);
			device_free(d, x.at);
		}
	comm_check_order(c);
	leave(c, d);
}

// test: every collective of the communicator
static void join_and_leave(const Place *p)
{
	Device *d;
	Comm *c = join_case(p, &d, NULL);
	leave(c, d);
}

/* or the transport says why it cannot work */
static bool can_work(CommCase k)
{
	Ended ended[MOST];
	char want[96];
	run_ranks(1, ended, join_and_leave, &k);
	snprintf(want, sizeof want, "rank 0: no transport '%s': ", k.transport);
	const char *why = strstr(ended[0].said, want);
	if (ended[0].status == 1 && why && why[strlen(want)] > ' ')
		print_message("not tried: %s", why);
	else if (ended[0].status)
		fail_msg("%s ends with %d: %s", k.transport, ended[0].status,
			ended[0].said);
	return ended[0].status == 0;
}

static void collectives_are_right(void **state)
{
	static const char *const names[] = { CHOICE_NAMES(TRANSPORTS_OF) };
	static CommCase delayed[] = { { "ring", 2000 }, { "owner", 2000 } };
	int tried = 0;
	for (size_t i = TRANSPORT_AUTO + 1; i < sizeof names / sizeof *names; i++) {
		CommCase k = { names[i], 0 };
		if (can_work(k)) {
			all_well(try_all, &k);
			tried++;
		}
	}
	assert_true(tried >= 3);        /* ring, owner, alternate */
	for (int i = 0; i < 2; i++)
		all_well(try_all, &delayed[i]);
}

// test: events say when a result is there
static void queue_many(const Place *p)
{
	enum { MANY = 100, N = 101 };
	char doing[96] = "";
	Device *d;
	Comm *c = join_case(p, &d, doing);
	Array x = comm_array(c, MANY * N, FP32, MEM_GRADIENT, "x");
	Event events[MANY];
	// queue an all-reduce of each part
	for (int i = 0; i < MANY; i++) {
		Array part = array_part(d, x, (size_t)i * N);
		fill(d, part, N, comm_rank(c), i);
		events[i] = comm_all_reduce(c, part, N, "part", i);
	}
	if (p->context && (device_reached(d, events[MANY - 1])
		|| strncmp(doing, "all-reduce ", 11) != 0))
		die("the queue does not sleep, but does '%s'", doing);
	// wait for every ninth event, and look at its part
	for (int i = 0; i < MANY; i += 9) {
		device_wait(d, COMPUTE, events[i]);
		if (!device_reached(d, events[i]))
			die("event %d is not reached", i);
		expect(c, d, "part", array_part(d, x, (size_t)i * N), 0, N, -1, i);
	}
	comm_barrier(c);
	if (doing[0])
		die("after all the rank does '%s'", doing);
	leave(c, d);
}

// test: events say when a result is there
static void events_follow_the_queue(void **state)
{
	static CommCase slow = { "ring", 3000 };
	all_well(queue_many, NULL);
	all_well(queue_many, &slow);
}

// test: values of hosts
static void exchange_values(const Place *p)
{
	Device *d;
	Comm *c = join_case(p, &d, NULL);
	char all[MOST][5];
	double ranks = comm_ranks(c);
	for (int turn = 0; turn < 20; turn++) {
		// gather bytes, a sum and a maximum
		memset(all, 0xff, sizeof all);
		memset(all[p->rank], 'a' + p->rank, 5);
		comm_gather_host(c, all, 5);
		for (int r = 0; r < p->ranks; r++)
			if (memcmp(all[r], (char [5]){ 'a' + r, 'a' + r, 'a' + r, 'a' + r,
				'a' + r }, 5) != 0)
				die("rank %d holds wrong bytes of rank %d", p->rank, r);
		if (comm_sum(c, p->rank + 0.5) != ranks * ranks / 2)
			die("a wrong sum");
		if (comm_max(c, -p->rank) != 0 || comm_max(c, p->rank) != ranks - 1)
			die("a wrong maximum");
		for (int r = 0; r < p->ranks; r++)
			if (!isnan(comm_max(c, p->rank == r ? NAN : p->rank)))
				die("the maximum lost the NaN of rank %d", r);
	}
	leave(c, d);
}

// test: values of hosts
static void hosts_exchange_values(void **state)
{
	static CommCase slow = { "owner", 3000 };
	all_well(exchange_values, NULL);
	all_well(exchange_values, &slow);
}

TESTS(
	cmocka_unit_test(collectives_are_right),
	cmocka_unit_test(events_follow_the_queue),
	cmocka_unit_test(hosts_exchange_values))
