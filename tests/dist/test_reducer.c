/* sums of gradients of any shape, in any order of announcements */
#define _GNU_SOURCE
#include "dist/reducer.h"
#include "tests/ops/compare.h"
#include "tests/dist/job.h"

// sum gradients without a model
static const GradientPart parts[] = {
	{ 0, 7, 1 }, { 7, 1, 1 }, { 16, 300, 2 }, { 316, 0, 1 }, { 320, 65, 1 },
	{ 385, 1000, 1 }, { 1400, 3, 1 },
};
enum { NPARTS = sizeof parts / sizeof *parts, EXTENT = 1408, NOBODY = 0,
	SOME = 1, SHARED = 2, FROZEN = 3 };

typedef struct Sums {
	DdpSettings settings;
	int buckets;
} Sums;

static bool uses(int rank, int part)
{
	return part != FROZEN && part != NOBODY && (part != SOME || rank % 2 == 0);
}

/* a rank's gradient as it reaches the wire */
static real addend(int rank, int step, int part, size_t i, Type wire)
{
	real x = (real)random_truncated(rank + 10 * step, part, i, 3);
	return uses(rank, part) ? (real)round_to(wire, (float)x) : 0;
}

/* the gradient is whole when its last use is announced */
static void announce_part(Reducer *r, Device *d, int rank, int step, int part,
	bool last)
{
	real *x = reals(reducer_gradients(r)) + parts[part].offset;
	for (size_t i = 0; i < parts[part].count && last; i++)
		x[i] = (real)random_truncated(rank + 10 * step, part, i, 3);
	reducer_ready(r, part, 1, device_event(d, COMPUTE));
	usleep(200);
}

static void announce_shuffled(Reducer *r, Device *d, int rank, int step)
{
	int order[NPARTS + 1] = { 0, 1, 2, 3, 4, 5, 6, SHARED }, shared = 0;
	for (int i = NPARTS; i > 0; i--) {
		int k = random_bits(rank, step, i) % (i + 1), kept = order[i];
		order[i] = order[k];
		order[k] = kept;
	}
	for (int i = 0; i <= NPARTS; i++)
		if (uses(rank, order[i]))
			announce_part(r, d, rank, step, order[i],
				order[i] != SHARED || ++shared == parts[SHARED].uses);
}

static void check_sums(Reducer *r, Device *d, int ranks, int step, Type wire)
{
	real got[EXTENT];
	array_read(d, got, reducer_gradients(r), EXTENT);
	for (int part = 0; part < NPARTS; part++)
		for (size_t i = 0; i < parts[part].count; i++) {
			float want = (float)addend(0, step, part, i, wire);
			for (int k = 1; k < ranks; k++)
				want += (float)addend(k, step, part, i, wire);
			want = round_to(wire, want);
			if (memcmp(&want, &got[parts[part].offset + i], sizeof want) != 0)
				die("step %d, part %d, element %zu: %g, not %g", step, part, i,
					got[parts[part].offset + i], want);
		}
}

static void sum_steps(Device *d, Comm *c, void *arg)
{
	const Sums *s = arg;
	Reducer *r = reducer_new(d, c, &s->settings, parts, NPARTS, EXTENT, FP32);
	if (reducer_buckets(r) != s->buckets)
		die("%d buckets, not %d", reducer_buckets(r), s->buckets);
	// sum the gradients of several steps
	for (int step = 0; step < 5; step++) {
		Array g = reducer_gradients(r);
		for (int part = 0; part < NPARTS; part++)
			for (size_t i = 0; i < parts[part].count; i++)
				reals(g)[parts[part].offset + i] = NAN;
		announce_shuffled(r, d, comm_rank(c), step);
		reducer_finish(r);
		check_sums(r, d, comm_ranks(c), step, s->settings.wire);
	}
	reducer_free(&r);
}

// sum gradients without a model
static void gradients_of_any_shape_and_order_are_summed(void **state)
{
	// list the settings and their numbers of buckets
	Sums sums[] = {
		{ { DDP_NAIVE, 0, FP32, false }, 6 }, { { DDP_FLAT, 0, FP32, false }, 1 },
		{ { DDP_OVERLAP, 0, FP32, false }, 6 },
		{ { DDP_BUCKETED, 0, FP32, false }, 6 },
		{ { DDP_BUCKETED, 0.000032, FP32, false }, 5 },
		/* the last two of them; the others */
		{ { DDP_BUCKETED, 0.00408, FP32, false }, 2 },
		{ { DDP_BUCKETED, 0.00204, BF16, false }, 2 },
		{ { DDP_BUCKETED, 1, BF16, false }, 1 },
		{ { DDP_OVERLAP, 0, BF16, false }, 6 },
	};
	for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
		in_ranks(2 + i % 3, (CommSettings){ .transport = "owner",
			.delay_us = i % 2 * 200 }, sum_steps, &sums[i]);
}

// see which sums are there early
static void look_early(Device *d, Comm *c, void *arg)
{
	enum { N = 4, EACH = 10 };
	const DdpSettings *s = arg;
	GradientPart four[N];
	real got[N * EACH];
	for (int i = 0; i < N; i++)
		four[i] = (GradientPart){ i * EACH, EACH, 1 };
	bool early = s->kind == DDP_OVERLAP || s->kind == DDP_BUCKETED;
	Reducer *r = reducer_new(d, c, s, four, N, N * EACH, FP32);
	ops_for(d)->fill(d, reducer_gradients(r), 1, N * EACH);
	reducer_ready(r, 0, 1, device_event(d, COMPUTE));
	reducer_ready(r, 2, 2, device_event(d, COMPUTE));
	device_now_ms(d);
	array_read(d, got, reducer_gradients(r), N * EACH);
	for (int i = 0; i < N; i++)
		if (got[i * EACH] != (i >= 2 && early ? comm_ranks(c) : 1))
			die("%s: gradient %d is %g", ddp_names[s->kind], i, got[i * EACH]);
	reducer_ready(r, 1, 1, device_event(d, COMPUTE));
	reducer_finish(r);
	array_read(d, got, reducer_gradients(r), N * EACH);
	for (int i = 0; i < N * EACH; i++)
		if (got[i] != comm_ranks(c))
			die("%s: element %d is %g", ddp_names[s->kind], i, got[i]);
	reducer_free(&r);
}

static void early_kinds_send_while_others_wait(void **state)
{
	for (int kind = 0; kind < NDDP; kind++)
		in_ranks(2, by_ring, look_early,
			&(DdpSettings){ kind, 0.00008, FP32, false });
}

// announce a gradient too often
static void announce_twice(Device *d, Comm *c, void *arg)
{
	const int *part = arg;
	Reducer *r = reducer_new(d, c,
		&(DdpSettings){ .kind = DDP_OVERLAP }, parts, NPARTS, EXTENT,
		FP32);
	for (int i = 0; i <= parts[*part].uses; i++)
		reducer_ready(r, *part, 1, device_event(d, COMPUTE));
}

static void too_many_announcements_end_the_program(void **state)
{
	for (int part = 0; part < NPARTS; part++)
		all_refuse(1, announce_twice, &part, 1, "announced");
}

TESTS(
	cmocka_unit_test(gradients_of_any_shape_and_order_are_summed),
	cmocka_unit_test(early_kinds_send_while_others_wait),
	cmocka_unit_test(too_many_announcements_end_the_program))
