/* ranks that are killed, stopped, leave, or do not do as the others: every rank
 * ends, and says why */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "tests/base/program.h"
#include "tests/dist/faults.h"

enum { N = 20000, LIMIT_S = 1 };
#define KINDS_OF(FIRST, NEXT) FIRST(ALL_REDUCES, "all-reduce ") \
	NEXT(SCATTERS, "reduce-scatter ") NEXT(GATHERS, "all-gather ") \
	NEXT(BROADCASTS, "broadcast ") NEXT(MESSAGE, "message ") \
	NEXT(HOST_GATHERS, "gather ") NEXT(EXCHANGES, "exchange ") \
	NEXT(ALL_TO_ALLS, "all-to-all ") NEXT(BARRIERS, "barrier ")
enum { CHOICE_IDS(KINDS_OF) KINDS };
static const char *const names[KINDS] = { CHOICE_NAMES(KINDS_OF) };

typedef struct Fault {
	const char *transport;
	int kind, rank;
	/* what happens to the rank, after so long */
	void (*happens)(int signal);
	int after_us;
} Fault;

// do one collective, again and again
static Comm *join_by(const Place *p, const char *transport, Device **d)
{
	return join(p, "cpu", &(CommSettings){ .transport = transport,
		.limit_s = LIMIT_S }, d);
}

static void do_one(Comm *c, Array x, int kind, int i)
{
	int rank = comm_rank(c);
	char all[MOST];
	switch (kind) {
	case ALL_REDUCES: comm_all_reduce(c, x, N, "bucket", i); break;
	case SCATTERS: comm_reduce_scatter(c, x, N, "bucket", i); break;
	case GATHERS: comm_all_gather(c, x, N, "bucket", i); break;
	case BROADCASTS:
		comm_broadcast(c, x, N, i % comm_ranks(c), "bucket", i);
		break;
	case MESSAGE:
		if (rank == i % 2)
			comm_send(c, x, N, 1 - rank, "bucket", i);
		else if (rank < 2)
			comm_receive(c, x, N, 1 - rank, "bucket", i);
		break;
	case HOST_GATHERS: comm_gather_host(c, all, 1); break;
	case EXCHANGES: comm_exchange(c, x, N, "bucket", i); break;
	case ALL_TO_ALLS: comm_all_to_all(c, x, N, x, "bucket", i); break;
	case BARRIERS: comm_barrier(c);
	}
}

static void repeat(const Place *p)
{
	const Fault *f = p->context;
	Device *d;
	Comm *c = join_by(p, f->transport, &d);
	Array x = comm_parts(c, N, FP32, MEM_GRADIENT, "x").at[p->rank];
	memset(x.at, 0, N * sizeof(real));
	if (p->rank == f->rank)
		happen_after(f->happens, f->after_us);
	for (int i = 0;; i++) {
		do_one(c, x, f->kind, i);
		if (i % 64 == 0)
			d->backend->synchronize(d->state, COMM);
	}
}

// test: a rank is killed, stops or leaves
/* the faulty rank ends with `status`, the others with 1 */
static void expect_end(Fault f, int ranks, int status, const char *want)
{
	Ended ended[MOST];
	bool named = false;
	double start_ms = clock_ms();
	run_ranks(ranks, ended, repeat, &f);
	for (int r = 0; r < ranks; r++) {
		if (ended[r].status != (r == f.rank ? status : 1))
			fail_msg("%s rank %d ends with %d: %s", names[f.kind], r,
				ended[r].status, ended[r].said);
		if (r == f.rank)
			continue;
		check_line(names[f.kind], ended[r].said, r);
		named |= strstr(ended[r].said, want) && strstr(ended[r].said,
			names[f.kind]);
	}
	if (!named)
		fail_msg("nobody says '%s' in %s: '%s'", want, names[f.kind],
			ended[!f.rank].said);
	assert_true(clock_ms() - start_ms < 20e3);
}

static void try_fault(void (*happens)(int), int status, const char *transport,
	int kinds, bool stops)
{
	for (int kind = 0; kind < kinds; kind++) {
		int ranks = kind == MESSAGE ? 2 : 3;
		uint64_t bits = random_bits((uint64_t)clock_ms(), 0, (uint64_t)kind);
		Fault f = { transport, kind, (int)(bits % (uint64_t)ranks), happens,
			1 + (int)(bits >> 33) % 30000 };
		char lost[32];
		snprintf(lost, sizeof lost, "lost rank %d in", f.rank);
		expect_end(f, ranks, status, stops ? "has not ended after 1 s" : lost);
	}
}

static void killed_ranks_are_named(void **state)
{
	try_fault(be_killed, -SIGKILL, "ring", KINDS, false);
	try_fault(be_killed, -SIGKILL, "owner", SCATTERS + 1, false);
	try_fault(be_killed, -SIGKILL, "alternate", ALL_REDUCES + 1, false);
}

static void stopped_ranks_are_named(void **state)
{
	try_fault(be_stopped, -SIGSTOP, "ring", KINDS, true);
}

static void ranks_that_leave_are_named(void **state)
{
	try_fault(walk_out, 0, "ring", KINDS, false);
	try_fault(walk_out, 0, "owner", SCATTERS + 1, false);
}

// test: the machine stands still
enum { STILL_S = 6, PATIENCE_S = 4, STEPS = 6 };

static void wait_for_rank_0(const Place *p)
{
	Device *d = open_device("cpu", p->rank);
	Comm *c = comm_open(meet_all(p, d), d, &(CommSettings){
		.transport = "ring", .limit_s = PATIENCE_S });
	for (int i = 0; i < STEPS; i++) {
		clock_t end = clock() + CLOCKS_PER_SEC / 2;
		while (p->rank == 0 && clock() < end)
			;
		comm_barrier(c);
	}
	leave(c, d);
}

static void meet_only(const Place *p)
{
	Link *l = link_tcp(p->rank, p->ranks, &p->meeting, PATIENCE_S);
	l->close(l);
}

static void fork_some(Body *body, const Meeting *at, pid_t *pid, int begin,
	int end)
{
	for (int r = begin; r < end; r++)
		pid[r] = fork_rank(body, &(Place){ r, 3, *at, NULL }, stderr);
}

static void machines_that_stand_still_go_on(void **state)
{
	Meeting first = meeting_here(), second = meeting_here();
	pid_t pid[6];
	int status;
	fflush(NULL);
	fork_some(wait_for_rank_0, &first, pid, 0, 3);
	fork_some(meet_only, &second, pid + 3, 0, 2);
	usleep(1200000);
	for (int i = 0; i < 5; i++)
		kill(pid[i], SIGSTOP);
	sleep(STILL_S);
	for (int i = 0; i < 5; i++)
		kill(pid[i], SIGCONT);
	fork_some(meet_only, &second, pid + 3, 2, 3);
	for (int i = 0; i < 6; i++) {
		waitpid(pid[i], &status, 0);
		assert_int_equal(status, 0);
	}
	meeting_close(&first);
	meeting_close(&second);
}

// test: a rank does not do as the others
static void differ(const Place *p)
{
	const char *how = p->context;
	Device *d;
	Comm *c = join_by(p, strcmp(how, "transport") == 0 ? "pigeons" : NULL, &d);
	Array x = comm_array(c, N, FP32, MEM_GRADIENT, "x");
	memset(x.at, 0, N * sizeof(real));
	bool other = p->rank == 1;
	for (int i = 0; i < 10; i++) {
		if (i == 5 && other && strcmp(how, "skip") == 0)
			continue;
		size_t n = i == 5 && other && strcmp(how, "size") == 0 ? N - 3 : N;
		if (i == 5 && other && strcmp(how, "kind") == 0)
			comm_all_gather(c, x, N, "bucket", i);
		else
			comm_all_reduce(c, x, n, "bucket", i);
	}
	if (other && strcmp(how, "order") == 0)
		comm_all_reduce(c, x, 0, "nothing", 0);
	comm_check_order(c);
	leave(c, d);
}

static void expect_words(Body *body, const char *how, int ranks,
	const char *want)
{
	Ended ended[MOST];
	bool named = false;
	run_ranks(ranks, ended, body, (void *)how);
	for (int r = 0; r < ranks; r++) {
		if (ended[r].status != 1)
			fail_msg("%s: rank %d ends with %d: %s", how, r, ended[r].status,
				ended[r].said);
		check_line(how, ended[r].said, strcmp(how, "twice") == 0 && r == 2 ? 1
			: r);
		named |= strstr(ended[r].said, want) != NULL;
	}
	if (!named)
		fail_msg("%s: nobody says '%s' but '%s', '%s'", how, want,
			ended[0].said, ended[1].said);
}

static void other_collectives_are_named(void **state)
{
	expect_words(differ, "skip", 2, "rank 1 is in all-reduce 7 (bucket 6, "
		"0.08 MB), this one in all-reduce 7 (bucket 5, 0.08 MB)");
	expect_words(differ, "size", 2, "rank 1 sends 39992 bytes, not 40000, in "
		"all-reduce 7 (bucket 5, 0.08 MB)");
	expect_words(differ, "kind", 2, "rank 1 is in all-gather 7 (bucket 5, 0.08 "
		"MB), this one in all-reduce 7 (bucket 5, 0.08 MB)");
	expect_words(differ, "order", 2, "rank 1 has queued 12 collectives, this "
		"one 11");
	expect_words(differ, "transport", 2, "no transport 'pigeons'");
}

// test: ranks that do not meet
static void meet_badly(const Place *p)
{
	const char *how = p->context;
	Meeting m = p->meeting;
	int rank = p->rank, ranks = p->ranks;
	if (strcmp(how, "missing") == 0 && rank == 1)
		die("rank 1: has something else to do");
	if (strcmp(how, "twice") == 0 && rank == 2)
		rank = 1;
	if (strcmp(how, "size") == 0 && rank == 1)
		ranks = 4;
	if (strcmp(how, "port") == 0)
		m.listener = -1;
	Link *link = link_tcp(rank, ranks, &m, LIMIT_S);
	link_close(&link);
}

static void meetings_that_fail_say_why(void **state)
{
	expect_words(meet_badly, "missing", 3, "1 of 3 ranks are missing: 1");
	expect_words(meet_badly, "twice", 3, "says that it is rank 1 of 3, as "
		"another did");
	expect_words(meet_badly, "size", 3, "rank 1 was told of 4 ranks, this one "
		"of 3");
	expect_words(meet_badly, "port", 2, "Address already in use");
}

// test: a link shows whose end is closed
static void look_at_ends(const Place *p)
{
	Link *all = link_tcp(p->rank, p->ranks, &p->meeting, 20),
		*part = link_split(all, p->rank > 0);
	char letter = 'x';
	all->number = 1, all->doing = "farewell";
	if (p->rank == 2) {
		for (int r = 0; r < 2; r++)
			all->exchange(all, r, &letter, 1, r, NULL, 0);
		for (int r = 0; r < 2; r++)
			all->exchange(all, r, NULL, 0, r, &letter, 1);
		kill(getpid(), SIGKILL);
	}
	// wait until the end of the lost rank shows
	bool early = all->lost(all, 2);
	all->exchange(all, 2, &letter, 1, 2, NULL, 0);
	double end_ms = clock_ms() + 10e3;
	while (!all->lost(all, 2) && clock_ms() < end_ms)
		usleep(1000);
	if (early || !all->lost(all, 2) || all->lost(all, 1 - p->rank)
		|| (p->rank == 1 && !part->lost(part, 1)) || all->lost(all, p->rank))
		die("rank %d sees other ends", p->rank);
	all->exchange(all, 1 - p->rank, &letter, 1, 1 - p->rank, &letter, 1);
}

// test: a link shows whose end is closed
static void closed_ends_are_seen(void **state)
{
	Ended ended[MOST];
	run_ranks(3, ended, look_at_ends, NULL);
	for (int r = 0; r < 3; r++)
		if (ended[r].status != (r == 2 ? -SIGKILL : 0))
			fail_msg("rank %d ends with %d: %s", r, ended[r].status,
				ended[r].said);
}

TESTS(
	cmocka_unit_test(killed_ranks_are_named),
	cmocka_unit_test(stopped_ranks_are_named),
	cmocka_unit_test(ranks_that_leave_are_named),
	cmocka_unit_test(machines_that_stand_still_go_on),
	cmocka_unit_test(other_collectives_are_named),
	cmocka_unit_test(meetings_that_fail_say_why),
	cmocka_unit_test(closed_ends_are_seen))
