/* the cost model against closed forms, limits, and the engine's own counts */
#include <time.h>

#include "base/random.h"
#include "estimate/cost.h"
#include "estimate/memory_estimate.h"
#include "model/sizes.h"
#include "tests/ops/compare.h"

static uint64_t seed, draws;

static double uniform(void)
{
	return random_uniform(seed, 3, draws++);
}

static void agree(double got, double wanted, double part, const char *what)
{
	if (!(fabs(got - wanted) <= part * fabs(wanted) + 1e-12))
		fail_msg("seed %lu, %s: %.12g, not %.12g", (unsigned long)seed, what, got,
			wanted);
}

// a machine and a run to try
static const CostMachine nothing = { .TFLOPs = 1, .GBps = INFINITY,
	.near = { INFINITY, 0 }, .far = { INFINITY, 0 }, .node = 8,
	.stretch = { 1, 1 } };

static CostMachine any_machine(void)
{
	return (CostMachine){ .TFLOPs = 1 + uniform(), .GBps = 1 + uniform(),
		.memory_GB = 80, .forward_us = uniform(), .backward_us = uniform(),
		.call_us = uniform(), .sum_ms_per_GB = uniform(),
		.near = { 1 + uniform(), uniform() }, .far = { 0.1 + uniform(),
			uniform() }, .node = 8, .stretch = { 1 + uniform(), 1 + uniform() } };
}

static CostRun any_run(CostStrategy strategy, long data)
{
	return (CostRun){ .shape = { 500, 64, 160, 6, 4, 16, 4, 3 }, .tokens = 256,
		.context = 64, .data = data, .tensor = 1, .parts = 1, .stages = 1,
		.microbatches = 1, .interleave = 1, .strategy = strategy,
		.bucket_mb = 0.1, .prefetch = 1, .real = 4, .low = 2, .gradient = 2,
		.gather = 2, .wire = 2, .mixed = true, .flash = true };
}

// collectives by formula
static void collectives_of_a_ring(void **state)
{
	for (int n = 1; n <= 8; n++) {
		CostMachine m = any_machine();
		double S = 1e9 * uniform(), W = m.near.GBps * 1e6, h = m.near.step_us,
			a = m.call_us, part = (n - 1.0) / n,
			sum = part * S * 1e-9 * m.sum_ms_per_GB, gather = n < 2 ? 0
			: (a + (n - 1) * h) * 1e-3 + part * S / W;
		CostGroup g = { n, 8 };
		agree(cost_collective(&m, COST_ALL_GATHER, g, S), gather, 1e-12,
			"all-gather");
		agree(cost_collective(&m, COST_REDUCE_SCATTER, g, S), n < 2 ? 0
			: gather + sum, 1e-12, "reduce-scatter");
		agree(cost_collective(&m, COST_ALL_REDUCE, g, S), n < 2 ? 0
			: 2 * gather - a * 1e-3 + sum, 1e-12, "all-reduce");
		assert_true(cost_collective(&m, COST_ALL_REDUCE, g, 0) == 0);
		m.byte_cost[COST_BROADCAST] = 1.5;
		m.broadcast_us = 7;
		agree(cost_collective(&m, COST_BROADCAST, g, S), n < 2 ? 0
			: (a + 7 + (n - 1) * h) * 1e-3 + 1.5 * S / W, 1e-12, "broadcast");
		m.pieces_us = 3;
		agree(cost_collective(&m, COST_ALL_GATHER, g, S), n < 2 ? 0
			: gather + 3e-3 * sqrt(part * S * 1e-6), 1e-12, "in pieces");
	}
}

// test collectives over nodes
/* 4 nodes of 2, 4 or 8 members, or of 1 */
static void collectives_over_nodes(void **state)
{
	const double S = 1e9;
	for (int on_node = 1; on_node <= 8; on_node *= 2) {
		CostMachine m = nothing;
		CostGroup g = { 4 * on_node, on_node };
		double part = (g.n - 1.0) / g.n;
		m.near.GBps = 400;
		m.far.GBps = 60;
		agree(cost_collective(&m, COST_ALL_GATHER, g, S), part * S * 1e-6
			/ fmin(on_node > 1 ? 400 : 1e9, 60 * on_node), 1e-12, "rates");
		m.near.GBps = m.far.GBps = INFINITY;
		m.near.step_us = 1;
		m.far.step_us = 10;
		agree(cost_collective(&m, COST_ALL_GATHER, g, S) * 1e3,
			4 * on_node - 4 + 30, 1e-12, "steps of a ring");
		agree(cost_collective(&m, COST_ALL_REDUCE, g, S) * 1e3,
			2 * (on_node - 1) + 40, 1e-12, "steps of a tree");
	}
}

// counts of the engine
static void parameters_and_flops(void **state)
{
	for (int i = 0; i < NSIZES; i++) {
		const Shape *shape = &model_sizes[i].shape;
		CostShape s = cost_shape(shape);
		assert_true(cost_parameters(&s) == shape_count(shape));
		/* the engine counts the whole square of attention */
		agree(2 * 512 * cost_forward_flops(&s, 2 * 512),
			forward_flops(shape, 2, 512), 1e-12, "FLOPs");
	}
}

// hold the memory of a stage against the estimate
static void check_memory(Device *d, int policy, int ranks, int stage, long ahead)
{
	const Shape shape = { 333, 64, 64, 160, 3 + (long)(4 * uniform()), 4, 16,
		1e4 };
	enum { B = 4 };
	Model *m = model_new_bare(d, &shape, &policies[policy], 1);
	CostRun r = any_run(COST_ZERO1 + stage - 1, ranks);
	model_fuse(m);
	r.shape = cost_shape(&shape);
	r.tokens = B * shape.context;
	r.context = shape.context;
	r.prefetch = ahead;
	r.low = r.gradient = r.code = 4;
	r.mixed = policy != POLICY_FP32;
	r.fp8 = policy == POLICY_FP8;
	Sharding by = { .ranks = ranks, .settings = { .stage = stage,
		.prefetch = (int)ahead, .wire = r.mixed ? BF16 : FP32 } };
	agree(cost_memory(&r), memory_estimate_sharded(m, B, shape.context,
		&by).total, r.fp8 > 0 ? 0.015 : 0.01, "bytes of a rank");
	model_free(&m);
}

// hold memory against the estimate
static void memory_is_the_estimate(void **state)
{
	Device *d = device_open("cpu");
	const int types[] = { POLICY_FP32, POLICY_BF16, POLICY_FP8 };
	for (int i = 0; i < 3; i++) {
		const Shape shape = { 333, 64, 64, 160, 5, 4, 16, 1e4 };
		int policy = types[i];
		Model *m = model_new(d, &shape, &policies[policy], 1);
		CostRun r = any_run(COST_FLAT, 2);
		model_fuse(m);
		r.shape = cost_shape(&shape);
		r.low = r.gradient = 4;
		r.mixed = policy != POLICY_FP32;
		r.fp8 = policy == POLICY_FP8;
		r.code = 4;
		agree(cost_memory(&r), memory_estimate(m, 4, 64, true).total, 0.01,
			"bytes of one device");
		r.recompute = true;
		model_recompute(m, 1, false);
		agree(cost_memory(&r), memory_estimate(m, 4, 64, true).total, 0.01,
			"bytes with blocks run again");
		model_free(&m);
		for (int ranks = 2; ranks <= 4; ranks += 2)
			for (int stage = 1; stage <= (policy == POLICY_FP8 ? 2 : 3); stage++)
				check_memory(d, policy, ranks, stage, stage == 3 ? ranks - 2 : 0);
	}
	device_close(&d);
}

// links that take no time
static double one_device(const CostMachine *m, CostRun r)
{
	r.strategy = COST_SINGLE;
	r.data = 1;
	return cost_step(m, &r).step_ms;
}

static void free_links_leave_one_device(void **state)
{
	for (CostStrategy s = COST_NAIVE; s < NCOST; s++)
		for (int n = 1; n <= 4; n++) {
			CostMachine m = any_machine();
			CostRun r = any_run(s, n);
			r.mixed = false;
			r.gradient = r.real;
			r.prefetch = n - 1;
			m.near = nothing.near;
			m.call_us = m.sum_ms_per_GB = 0;
			/* a rank's own part is copied into a slot */
			m.GBps = s == COST_FSDP ? INFINITY : m.GBps;
			double update = one_device(&m, r), alone = update;
			r.opt_ms = 1;
			update -= one_device(&m, r) - 1;
			r.opt_ms = 0;
			if (s >= COST_SHARDED)
				alone -= update * (1 - 1.0 / n);
			agree(cost_step(&m, &r).step_ms, alone, 1e-9,
				cost_names[s]);
			agree(cost_alone(&m, &r), 0, 0, "collectives alone");
		}
}

// test that every call is counted
/* where only calls take time: as many as there are collectives, and none is
 * hidden */
static void latency_is_counted(void **state)
{
	CostMachine m = nothing;
	CostRun r = any_run(COST_NAIVE, 2);
	m.call_us = 1000;
	m.TFLOPs = INFINITY;
	const struct { CostStrategy strategy; double calls; } all[] = {
		{ COST_NAIVE, 1 + 6 * 9 + 2 }, { COST_FLAT, 1 },
		{ COST_OVERLAP, 1 + 6 * 9 + 2 },
		/* each unit is summed and gathered alone, gains together */
		{ COST_ZERO1, 2 * 8 + 1 }, { COST_ZERO2, 2 * 8 + 1 },
		/* but for the head, whose weights stay for the backward pass, and the
		 * embedding, which that does not read */
		{ COST_FSDP, 8 + 8 + 6 + 1 },
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		r.strategy = all[i].strategy;
		r.prefetch = 0;
		agree(cost_step(&m, &r).step_ms, all[i].calls, 1e-9,
			cost_names[r.strategy]);
	}
}

// steps by hand
/* a run whose blocks take 3 ms forward and 6 ms backward, with an update of 1 ms;
 * without vocabulary and attention all time is the blocks' */
static CostRun by_hand(CostStrategy s, long blocks)
{
	CostRun r = any_run(s, 2);
	r.shape = (CostShape){ 0, 1000, 500, blocks, 0, 0, 0, 2 };
	r.fwd_ms = 3 * blocks;
	r.bwd_ms = 6 * blocks;
	r.opt_ms = 1;
	r.wire = r.gather = r.gradient = r.real = 4;
	r.mixed = false;
	return r;
}

/* a block has 1e6 elements, 4 MB: an all-reduce on two devices takes 4 ms at
 * 1 GB/s, a gather 2 ms */
static CostMachine slow_link(void)
{
	CostMachine m = nothing;
	m.near.GBps = 1;
	return m;
}

static void flat_gradients_by_hand(void **state)
{
	CostMachine m = slow_link();
	CostRun r = by_hand(COST_FLAT, 3);
	agree(cost_step(&m, &r).step_ms, 9 + 18 + 12 + 1, 1e-12, "flat");
	r.strategy = COST_BUCKETED;
	r.bucket_mb = 4;
	/* 4 ms hide under the 6 of the next block, those of the last do not */
	agree(cost_step(&m, &r).step_ms, 9 + 18 + 4 + 1, 1e-12, "buckets");
	m.stretch = (QueueStretch){ 1.5, 1.25 };
	/* two buckets of 5 ms, stretched, in which computing loses 5 - 5 / 1.5 */
	agree(cost_step(&m, &r).step_ms, 9 + 18 + 2 * (5 - 5 / 1.5) + 4 + 1,
		1e-12, "stretched buckets");
}

static void gathers_beside_forward_by_hand(void **state)
{
	CostMachine m = slow_link();
	CostRun r = by_hand(COST_ZERO1, 3);
	/* 2 ms of the last sum and of the first gather are exposed; owners update
	 * half each */
	agree(cost_step(&m, &r).step_ms, 9 + 18 + 2 + 0.5 + 2, 1e-12, "zero1");
	m.near.GBps = 0.25;
	/* 8 ms each: the sums are one queue from the first gradient on, the gathers
	 * one until the last, and 3 ms of forward follow that */
	agree(cost_step(&m, &r).step_ms, 6 + 24 + 0.5 + 24 + 3, 1e-12,
		"zero1, slow links");
}

static void gathers_ahead_by_hand(void **state)
{
	CostMachine m = slow_link();
	CostRun r = by_hand(COST_FSDP, 3);
	r.prefetch = 0;
	/* nothing is ahead: a gather before each block, in the backward pass behind
	 * the sum of the block before; the last sum is exposed too */
	agree(cost_step(&m, &r).step_ms, 9 + 18 + 3 * 2 + 2 + 2 * 4 + 2 + 0.5,
		1e-12, "prefetch 0");
	r.prefetch = 1;
	/* the first gather and the last sum are exposed */
	agree(cost_step(&m, &r).step_ms, 9 + 18 + 2 + 2 + 0.5, 1e-12,
		"prefetch 1");
}

static void gradients_wait_for_slots(void **state)
{
	const double first_sum = 9 + 6 + 20, starts[] = { 9 + 6 + 6, first_sum };
	CostMachine m = slow_link();
	m.near.GBps = 0.1;
	for (int stage = 0; stage < 2; stage++) {
		CostRun r = by_hand(COST_ZERO1 + stage, 3);
		QueueSchedule s = cost_schedule(&m, &r, 1);
		int computed = 0, third = 0;
		schedule_run(&s, m.stretch);
		/* embedding, 3 blocks and head forward, then head and 2 blocks */
		for (int i = 0; i < s.n && computed <= 5 + 3; i++)
			if (s.tasks[i].queue == COMPUTE_QUEUE && computed++ == 5 + 3)
				third = i;
		agree(s.tasks[third].start_ms, starts[stage], 1e-12, "third block");
		schedule_free(&s);
	}
}

static void updates_read_and_write(void **state)
{
	CostMachine m = nothing;
	CostRun r = any_run(COST_FLAT, 2);
	m.GBps = 1;
	r.gradient = 4;
	agree(cost_update_ms(&m, &r), cost_parameters(&r.shape) * (24 + 4 + 2) * 1e-6,
		1e-12, "update");
	r.mixed = false;
	r.strategy = COST_ZERO1;
	agree(cost_update_ms(&m, &r), cost_parameters(&r.shape) * (24 + 4) * 1e-6 / 2,
		1e-12, "update of half");
}

static void fp8_by_hand(void **state)
{
	CostMachine m = nothing;
	CostRun r = any_run(COST_FLAT, 2), in_fp8 = r;
	const double C = 64, F = 160, N = 256,
		linear = N * 2 * (4 * C * C + 3 * C * F) * 1e-9;
	in_fp8.fp8 = 2;
	in_fp8.code = 1;
	for (int backward = 0; backward < 2; backward++) {
		double ms = cost_unit_ms(&m, &r, UNIT_BLOCK, backward);
		agree(ms - cost_unit_ms(&m, &in_fp8, UNIT_BLOCK, backward),
			(1 + backward) * linear / 2, 1e-9, "linear layers");
		assert_true(cost_unit_ms(&m, &r, UNIT_HEAD, backward)
			== cost_unit_ms(&m, &in_fp8, UNIT_HEAD, backward));
	}
	CostMachine slow = nothing;
	slow.TFLOPs = INFINITY;
	slow.GBps = 1;
	r.shape.layers = in_fp8.shape.layers = 1;
	double code_by_code = cost_unit_ms(&slow, &in_fp8, UNIT_BLOCK, true)
		- cost_unit_ms(&slow, &r, UNIT_BLOCK, true),
		weights = 2 * (4 * C * C + 3 * C * F + 2 * C);
	agree(code_by_code, (N * 4 * 5 * C - weights) * 1e-6, 1e-9, "casts");
	// a measured pass shrinks by what is counted
	double part = cost_unit_ms(&m, &in_fp8, UNIT_BLOCK, false)
		/ cost_unit_ms(&m, &r, UNIT_BLOCK, false);
	r.fwd_ms = in_fp8.fwd_ms = 7;
	agree(cost_unit_ms(&m, &in_fp8, UNIT_BLOCK, false)
		/ cost_unit_ms(&m, &r, UNIT_BLOCK, false), part, 1e-9, "a measured pass");
	in_fp8.strategy = COST_FSDP;
	assert_non_null(cost_error(&in_fp8));
}

static double of_one_step(const CostMachine *m, CostRun r, long microbatches)
{
	r.microbatches = microbatches;
	QueueSchedule s = cost_schedule(m, &r, 1);
	double ms = schedule_run(&s, m->stretch);
	schedule_free(&s);
	return ms;
}

static void microbatches_gather_alike(void **state)
{
	for (int trial = 0; trial < 10; trial++) {
		CostMachine m = any_machine();
		CostRun r = any_run(COST_FSDP, 2 + trial % 3), more = r;
		r.microbatches = 9;
		more.microbatches = 12;
		agree(cost_step(&m, &more).step_ms - cost_step(&m, &r).step_ms,
			of_one_step(&m, r, 12) - of_one_step(&m, r, 9), 1e-6,
			"three microbatches more");
	}
}

static void microbatches_add_up(void **state)
{
	CostMachine m = slow_link();
	CostRun r = by_hand(COST_FLAT, 3);
	r.microbatches = 5;
	agree(cost_step(&m, &r).step_ms, 5 * 27 + 12 + 1, 1e-12, "flat");
	r.strategy = COST_SINGLE;
	r.data = 1;
	r.stages = 3;
	r.fwd_ms = 3;
	r.bwd_ms = 6;
	CostStep s = cost_step(&m, &r);
	agree(s.step_ms, 9 * (5 + 2) + 1, 1e-12, "stages");
	agree(s.bubble_ms, 9 * 2, 1e-12, "bubble");
	agree(s.compute_ms, 9 * 5 + 1, 1e-12, "computing");
}

// pipelines cell by cell
/* when the last of m microbatches has left a pipeline of p stages, each of which
 * does one forward and one backward in turn, with p - 1 - stage forwards first */
static double in_cells(int p, int m, double f, double b)
{
	enum { MOST = 40 };
	double end[2][MOST][MOST] = { { { 0 } } }, last = 0;
	int next[2][MOST] = { { 0 } };
	double free_at[MOST] = { 0 };
	for (int done = 0; done < 2 * p * m;)
		for (int s = 0; s < p; s++) {
			int F = next[0][s], B = next[1][s], ahead = p - s;
			bool back = B < m && (F == m || F - B >= ahead);
			int i = back ? B : F;
			double from = 0;
			if (i == m || (back && s < p - 1 && next[1][s + 1] <= i)
				|| (!back && s > 0 && next[0][s - 1] <= i))
				continue;
			from = back ? s < p - 1 ? end[1][s + 1][i] : end[0][s][i]
				: s > 0 ? end[0][s - 1][i] : 0;
			free_at[s] = fmax(from, free_at[s]) + (back ? b : f);
			end[back][s][i] = free_at[s];
			last = fmax(last, free_at[s]);
			next[back][s]++;
			done++;
		}
	return last;
}

static void pipeline_by_cells(void **state)
{
	for (int p = 1; p <= 6; p++)
		for (int m = p; m <= 24; m += 3) {
			double f = uniform(), b = uniform();
			agree(cost_pipeline(f + b, p, m, 1), in_cells(p, m, f, b),
				1e-9, "pipeline");
			agree(cost_pipeline(1, p, m, 2), m + (p - 1) / 2.0, 1e-12,
				"interleaved");
		}
}

// runs that are refused
static void nonsense_is_refused(void **state)
{
	const CostRun good = any_run(COST_FSDP, 3);
	assert_null(cost_error(&good));
#define REFUSED(field, value) do { CostRun r = good; r.field = value;        \
	assert_non_null(cost_error(&r)); } while (0)
	REFUSED(tokens, 0);
	REFUSED(tokens, NAN);
	REFUSED(data, 0);
	REFUSED(tensor, 3);
	REFUSED(parts, -1);
	REFUSED(stages, 2);
	REFUSED(microbatches, 0);
	REFUSED(prefetch, -1);
	REFUSED(strategy, COST_SINGLE);
	REFUSED(shape.layers, 0);
	REFUSED(shape.matrices, 1);
#undef REFUSED
	CostRun r = any_run(COST_ZERO1, 3);
	r.stages = 7;
	assert_non_null(cost_error(&r));
	r.stages = 2;
	r.interleave = 4;
	assert_non_null(cost_error(&r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		checked(collectives_of_a_ring), checked(collectives_over_nodes),
		checked(parameters_and_flops), checked(memory_is_the_estimate),
		checked(free_links_leave_one_device), checked(latency_is_counted),
		checked(flat_gradients_by_hand), checked(gathers_beside_forward_by_hand),
		checked(gathers_ahead_by_hand), checked(microbatches_add_up),
		checked(gradients_wait_for_slots), checked(updates_read_and_write),
		checked(microbatches_gather_alike),
		checked(fp8_by_hand),
		checked(pipeline_by_cells), checked(nonsense_is_refused),
	};
	seed = (uint64_t)time(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
