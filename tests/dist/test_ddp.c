/* kinds of data parallelism, buckets and delays change no bit of the weights */
#define _GNU_SOURCE
#include "dist/ddp.h"
#include "dist/ring.h"
#include "tests/ops/compare.h"
#include "tests/dist/job.h"
#include "tests/dist/passes.h"

// train a model by data parallelism, and in one process
static const Shape shapes[] = {
	{ 31, T, 12, 10, 2, 3, 4, 10000 },          /* gaps between its units */
	{ 64, T, 8, 16, 2, 2, 4, 10000 },           /* none */
};

static const DdpSettings plans[] = {
	{ .kind = DDP_NAIVE }, { .kind = DDP_FLAT }, { .kind = DDP_OVERLAP },
	{ DDP_BUCKETED, .bucket_mb = 0.000004 },
	{ DDP_BUCKETED, .bucket_mb = 0.0001 },
	{ DDP_BUCKETED, .bucket_mb = 0.001111 },
	{ DDP_BUCKETED, .bucket_mb = 0.004 }, { DDP_BUCKETED, .bucket_mb = 1000 },
};
enum { NPLANS = sizeof plans / sizeof *plans };
/* a scenario's want: (count), in one process; got: (NPLANS, ranks, count) */

static Model *new_model(Device *d, const Scenario *s, int seed)
{
	Model *m = model_new(d, s->shape, &policies[s->policy], seed);
	if (s->fused)
		model_fuse(m);
	return m;
}

static Optimizer new_optimizer(const Model *m, const Scenario *s)
{
	Optimizer o = s->sgd ? sgd_new(m, 0.1, 0.9)
		: adamw_new(m, 1e-2, 0.9, 0.999, 1e-8, 0.01);
	o.settings.clip = s->clips ? 0.5 : 0;
	return o;
}

static void point_gradients(Model *m, Array at)
{
	model_set_gradients(m, (Array){ NULL, at.type });
	model_set_gradients(m, at);
}

/* an exchange leaves sums in fp32, an all-reduce rounds them as the wire does */
static void update_by_sum(Model *m, Optimizer *o, Array sum, Array wire,
	const Scenario *s)
{
	Array gradients = m->gradients;
	if (s->exchange) {
		point_gradients(m, sum);
	} else {
		m->ops->cast(m->device, wire, sum, m->extent);
		m->ops->cast(m->device, m->gradients, wire, m->extent);
	}
	update_weights(m, o);
	point_gradients(m, gradients);
}

static void train_alone(Device *d, Comm *c, void *arg)
{
	const Scenario *s = arg;
	Model *m = new_model(d, s, 7);
	Optimizer o = new_optimizer(m, s);
	Array wire = array_new(d, m->extent, s->wire, MEM_TEMPORARY, "wire"),
		sum = array_new(d, m->extent, TYPE_REAL, MEM_TEMPORARY, "sum");
	if (s->wire == BF16 && s->policy == POLICY_BF16)
		model_set_gradient_type(m, BF16);
	m->share = 1.0 / s->ranks;
	for (int step = 0; step < STEPS; step++) {
		// add the gradients of all ranks' parts in order
		for (int r = 0; r < s->ranks; r++) {
			for (int i = 0; i < s->passes; i++) {
				Batch b = part_of_batch(s->shape, step, r, i);
				pass(m, &b, i > 0);
				batch_free(&b);
			}
			m->ops->cast(d, wire, m->gradients, m->extent);
			if (r == 0)
				m->ops->cast(d, sum, wire, m->extent);
			else
				m->ops->add(d, sum, sum, wire, m->extent);
		}
		update_by_sum(m, &o, sum, wire, s);
	}
	read_weights(m, s->want);
	optimizer_free(&o);
	device_free(d, wire.at);
	device_free(d, sum.at);
	model_free(&m);
}

// train a model by data parallelism, and in one process
static void step_of_rank(Model *m, Optimizer *o, Ddp *ddp, const Scenario *s,
	int step, int rank)
{
	Batch b = part_of_batch(s->shape, step, rank, 0);
	m->ops->fill(m->device, m->gradients, NAN, m->extent);
	for (int k = 0; k < o->sums.n; k++)
		m->ops->fill(m->device, o->sums.at[k], NAN, m->extent);
	// take a step of one pass
	if (s->passes == 1) {
		timed_step(m, o, &b, MODE_TRAIN);
		batch_free(&b);
		return;
	}
	// take a step of several passes
	for (int i = 0; i < s->passes; i++) {
		ddp_sync(ddp, i == s->passes - 1);
		pass(m, &b, i > 0);
		batch_free(&b);
		b = part_of_batch(s->shape, step, rank, i + 1);
	}
	batch_free(&b);
	update_weights(m, o);
}

// train a model by data parallelism, and in one process
static void train_together(Device *d, Comm *c, void *arg)
{
	const Scenario *s = arg;
	int rank = comm_rank(c);
	for (int k = 0; k < NPLANS; k++) {
		DdpSettings plan = plans[k];
		plan.wire = s->wire;
		plan.exchange = s->exchange;
		// train by this plan, and keep the weights
		Model *m = new_model(d, s, 7 + 10 * rank);
		Ddp *ddp = ddp_new(m, c, &plan);
		Optimizer o = new_optimizer(m, s);
		ddp_bind(ddp, &o);
		assert((o.sums.n == s->ranks) == s->exchange);
		for (int step = 0; step < STEPS; step++)
			step_of_rank(m, &o, ddp, s, step, rank);
		read_weights(m, s->got + (k * s->ranks + rank) * m->count);
		optimizer_free(&o);
		ddp_free(&ddp);
		model_free(&m);
	}
}

// compare the weights of all kinds
static void compare_weights(const Scenario *s, bool with_alone)
{
	size_t n = shape_count(s->shape);
	for (int k = 0; k < NPLANS; k++)
		for (int r = 0; r < s->ranks; r++) {
			// compare this rank's weights with what is wanted
			const real *got = s->got + (k * s->ranks + r) * n,
				*want = with_alone ? s->want : s->got + k * s->ranks * n;
			for (size_t i = 0; i < n; i++)
				assert_true(isfinite(want[i]));
			if (memcmp(got, want, n * sizeof *got) != 0)
				fail_msg("%d ranks, %s, %s, %s on the wire, %s, %g MB: rank %d",
					s->ranks, s->transport, policies[s->policy].name,
					type_names[s->wire], ddp_names[plans[k].kind],
					plans[k].bucket_mb, r);
		}
}

// compare the weights of all kinds
static void try_scenario(Scenario *s, bool exchanges)
{
	size_t nbytes = shape_count(s->shape) * sizeof(real),
		all = NPLANS * s->ranks * nbytes;
	s->exchange = exchanges;
	s->want = shared(nbytes);
	s->got = shared(all);
	in_ranks(1, by_ring, train_alone, s);
	in_ranks(s->ranks, (CommSettings){ .transport = s->transport,
		.delay_us = s->delay_us }, train_together, s);
	compare_weights(s, s->exchange || s->ranks < 3
		|| strcmp(s->transport, "owner") == 0);
	munmap(s->want, nbytes);
	munmap(s->got, all);
}

static void all_kinds_give_the_bits_of_one_process(void **state)
{
	// list scenarios of all-reduces
	Scenario scenarios[] = {
		{ 1, "ring", &shapes[0], POLICY_FP32, FP32, .clips = true,
			.passes = 1 },
		{ 1, "owner", &shapes[1], POLICY_BF16, BF16, .fused = true,
			.passes = 2 },
		{ 2, "ring", &shapes[0], POLICY_FP32, FP32, .sgd = true,
			.clips = true, .passes = 1, .delay_us = 200 },
		{ 2, "ring", &shapes[0], POLICY_BF16, BF16, .fused = true, .passes = 1,
			.delay_us = 200 },
		{ 2, "owner", &shapes[1], POLICY_FP16, FP32, .fused = true,
			.clips = true, .passes = 2 },
		{ 3, "owner", &shapes[0], POLICY_FP32, BF16, .passes = 2 },
		{ 3, "owner", &shapes[1], POLICY_BF16, FP32, .fused = true,
			.clips = true, .passes = 1, .delay_us = 100 },
		{ 3, "ring", &shapes[0], POLICY_BF16, BF16, .passes = 1 },
		{ 4, "owner", &shapes[0], POLICY_FP32, FP32, .fused = true, .sgd = true,
			.clips = true, .passes = 1 },
		{ 4, "owner", &shapes[1], POLICY_FP16, BF16, .passes = 1 },
	};
	for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
		try_scenario(&scenarios[i], false);
}

// halve the share of the loss
static void compare_shares(Device *d, Comm *c, void *arg)
{
	const Scenario *s = arg;
	Model *m[2];
	Batch b = part_of_batch(s->shape, 0, 0, 0);
	for (int i = 0; i < 2; i++) {
		m[i] = new_model(d, s, 7);
		m[i]->share = i ? 0.5 : 1;
		pass(m[i], &b, false);
	}
	for (size_t i = 0; i < m[0]->extent; i++)
		if (reals(m[1]->gradients)[i] * 2 != reals(m[0]->gradients)[i])
			die("element %zu of the gradients", i);
	batch_free(&b);
	model_free(&m[0]);
	model_free(&m[1]);
}

static void half_the_share_halves_gradients(void **state)
{
	for (int fused = 0; fused < 2; fused++)
		in_ranks(1, by_ring, compare_shares,
			&(Scenario){ .shape = &shapes[0], .policy = POLICY_FP32,
				.fused = fused });
}

// train by exchanges of whole gradients
static void exchanges_give_the_bits_of_one_process(void **state)
{
	// list scenarios of exchanges
	Scenario scenarios[] = {
		{ 1, "ring", &shapes[0], POLICY_FP32, FP32, .fused = true,
			.clips = true, .passes = 1 },
		{ 2, "ring", &shapes[0], POLICY_FP32, FP32, .sgd = true,
			.clips = true, .passes = 1, .delay_us = 200 },
		{ 2, "owner", &shapes[1], POLICY_BF16, BF16, .fused = true,
			.clips = true, .passes = 2 },
		{ 2, "ring", &shapes[0], POLICY_FP16, BF16, .fused = true,
			.clips = true, .passes = 1 },
		{ 3, "ring", &shapes[0], POLICY_BF16, BF16, .fused = true, .passes = 1,
			.delay_us = 100 },
		{ 3, "owner", &shapes[1], POLICY_FP32, BF16, .fused = true,
			.clips = true, .passes = 2 },
		{ 4, "ring", &shapes[0], POLICY_FP32, FP32, .fused = true,
			.clips = true, .passes = 1 },
		{ 4, "ring", &shapes[1], POLICY_FP16, FP32, .sgd = true, .passes = 1 },
	};
	for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
		try_scenario(&scenarios[i], true);
}

// exchange one piece
static void check_piece(const real *x, int from, int rank)
{
	for (int i = 0; i < 30; i++)
		if ((i < 7 || i >= 20) && from != rank ? !isnan(x[i]) : x[i] != from)
			die("rank %d: element %d of rank %d is %g", rank, i, from, x[i]);
}

static void exchange_piece(Device *d, Comm *c, void *arg)
{
	Gradients parts = comm_parts(c, 30, BF16, MEM_GRADIENT, "parts");
	int rank = comm_rank(c);
	for (int r = 0; r < parts.n; r++)
		ops_for(d)->fill(d, parts.at[r], r == rank ? r : NAN, 30);
	device_wait(d, COMM, device_event(d, COMPUTE));
	device_wait(d, COMPUTE, comm_exchange(c, array_part(d, parts.at[rank], 7),
		13, "piece", 0));
	for (int r = 0; r < parts.n; r++) {
		real got[30];
		array_read(d, got, parts.at[r], 30);
		check_piece(got, r, rank);
	}
	if (comm_sent(c, EXCHANGE) != (parts.n - 1) * 13 * 2)
		die("%g bytes were sent", comm_sent(c, EXCHANGE));
}

static void send_shards(Device *d, Comm *c, void *arg)
{
	enum { N = 11, ROOM = 20, AT = 5 };
	int rank = comm_rank(c), ranks = comm_ranks(c);
	size_t own = shard_begin(N, rank + 1, ranks) - shard_begin(N, rank, ranks);
	Gradients parts = comm_parts(c, ROOM, BF16, MEM_GRADIENT, "parts");
	Array x = array_new(d, N, BF16, MEM_GRADIENT, "x");
	for (int i = 0; i < N; i++)
		ops_for(d)->fill(d, array_part(d, x, i), 16 * rank + i, 1);
	for (int r = 0; r < ranks; r++)
		ops_for(d)->fill(d, parts.at[r], -1, ROOM);
	device_wait(d, COMM, device_event(d, COMPUTE));
	device_wait(d, COMPUTE, comm_all_to_all(c, x, N,
		array_part(d, parts.at[rank], AT), "shards", 0));
	// compare what each rank has sent
	for (int r = 0; r < ranks; r++) {
		real got[ROOM];
		array_read(d, got, parts.at[r], ROOM);
		for (size_t i = 0; i < ROOM; i++) {
			size_t first = shard_begin(N, rank, ranks);
			real want = i < AT || i >= AT + own ? -1
				: (real)(16 * r + first + i - AT);
			if (got[i] != want)
				die("rank %d: element %zu of rank %d is %g, not %g", rank, i,
					r, (double)got[i], (double)want);
		}
	}
	if (fabs(comm_sent(c, ALL_TO_ALL) - (ranks - 1.0) / ranks * N * 2) > 1e-9)
		die("%g bytes were sent", comm_sent(c, ALL_TO_ALL));
	device_free(d, x.at);
}

// exchange one piece
static void pieces_come_to_their_places(void **state)
{
	for (int ranks = 1; ranks <= MOST; ranks++) {
		in_ranks(ranks, by_ring, exchange_piece, NULL);
		in_ranks(ranks, by_owner, send_shards, NULL);
	}
}

// overflow on one rank
static void overflow_once(Device *d, Comm *c, void *arg)
{
	const Scenario *s = arg;
	Model *m = new_model(d, s, 7);
	Ddp *ddp = ddp_new(m, c, &(DdpSettings){ DDP_FLAT, .exchange = true });
	Optimizer o = new_optimizer(m, s);
	ddp_bind(ddp, &o);
	m->loss_scale = 1;
	for (int step = 0; step < 2; step++) {
		Batch b = part_of_batch(s->shape, step, comm_rank(c), 0);
		pass(m, &b, false);
		batch_free(&b);
		if (step == 1 && comm_rank(c) == 1)
			reals(m->gradients)[0] = INFINITY;
		update_weights(m, &o);
	}
	if (o.t != 1 || m->loss_scale != 0.5)
		die("step %ld, loss scale %g", o.t, m->loss_scale);
	optimizer_free(&o);
	ddp_free(&ddp);
	model_free(&m);
}

static void all_ranks_leave_out_a_step(void **state)
{
	in_ranks(3, by_ring, overflow_once,
		&(Scenario){ .shape = &shapes[1], .policy = POLICY_FP16,
			.fused = true });
}

TESTS(
	cmocka_unit_test(all_kinds_give_the_bits_of_one_process),
	cmocka_unit_test(half_the_share_halves_gradients),
	cmocka_unit_test(exchanges_give_the_bits_of_one_process),
	cmocka_unit_test(pieces_come_to_their_places),
	cmocka_unit_test(all_ranks_leave_out_a_step))
