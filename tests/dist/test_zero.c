/* stages of ZeRO, groups and slots change no bit of the weights */
#define _GNU_SOURCE
#include "tests/dist/stages.h"

// train a model by data parallelism and by each stage
static void train_by_ddp(Device *d, Comm *c, const Scenario *s)
{
	int rank = comm_rank(c);
	Model *m = model_new(d, s->shape, &policies[s->policy], 7);
	prepare(m, s);
	Ddp *ddp = ddp_new(m, c, &(DdpSettings){ DDP_BUCKETED, 0.004, s->wire,
		s->exchange });
	Optimizer o = s->sgd ? sgd_new(m, 0.1, 0.9)
		: adamw_new(m, 1e-2, 0.9, 0.999, 1e-8, 0.01);
	o.settings = settings_of(s);
	ddp_bind(ddp, &o);
	train(&(Trained){ m, &o, ddp, NULL, { 0 } }, s, rank);
	read_weights(m, s->want + rank * m->count);
	optimizer_free(&o);
	ddp_free(&ddp);
	model_free(&m);
}

static void train_by_all(Device *d, Comm *c, void *arg)
{
	const Scenario *s = arg;
	int rank = comm_rank(c);
	train_by_ddp(d, c, s);
	for (int k = 0; k < NPLANS; k++) {
		Model *m;
		Zero *z = new_zero(d, c, s, plans[k], &m);
		train(&(Trained){ m, zero_optimizer(z), NULL, z, { 0 } }, s, rank);
		zero_read_weights(z, s->got + (k * s->ranks + rank) * m->count);
		zero_free(&z);
		model_free(&m);
	}
}

// compare the weights of all stages
static void compare_plan(const Scenario *s, int k, const real *got,
	const real *want)
{
	size_t n = shape_count(s->shape);
	if (memcmp(got, want, n * sizeof *got) != 0)
		fail_msg("%d ranks, %s, shape %d, %s, %s on the wire, %s, recompute %d, "
			"%d passes: stage %d, %d ahead, %g MB", s->ranks, s->transport,
			(int)(s->shape - shapes), policies[s->policy].name,
			type_names[s->wire], fusion_names[s->fused], s->recompute, s->passes,
			plans[k].stage, plans[k].prefetch, plans[k].bucket_mb);
}

/* the first plan with the same groups */
static int like(int k)
{
	int i = 0;
	while (plans[i].bucket_mb != plans[k].bucket_mb)
		i++;
	return i;
}

static void compare_stages(const Scenario *s)
{
	size_t n = shape_count(s->shape);
	for (size_t i = 0; i < NPLANS * n; i++) {
		real got = s->got[i / n * s->ranks * n + i % n], want = s->want[i % n];
		assert_true(isfinite(got));
		if (s->clips && !(fabs(got - want) <= 1e-3))
			fail_msg("plan %zu, element %zu: %g, not %g", i / n, i % n, got,
				want);
	}
	for (int k = 0; k < NPLANS; k++)
		for (int r = 0; r < s->ranks; r++)
			compare_plan(s, k, s->got + (k * s->ranks + r) * n, s->clips
				? s->got + like(k) * s->ranks * n : s->want);
}

static void train_and_compare(Scenario *s, const char *device)
{
	Job job = { device, { .transport = s->transport, .delay_us = s->delay_us },
		train_by_all, s };
	size_t nbytes = s->ranks * shape_count(s->shape) * sizeof(real);
	s->want = shared(nbytes);
	s->got = shared(NPLANS * nbytes);
	run_well(s->ranks, be_rank, &job);
	compare_stages(s);
	munmap(s->want, nbytes);
	munmap(s->got, NPLANS * nbytes);
}

static void all_stages_give_the_bits_of_data_parallelism(void **state)
{
	// list scenarios of stages on the CPU
	Scenario scenarios[] = {
		{ 1, "ring", &shapes[0], POLICY_BF16, FP32, .fused = true,
			.passes = 1 },
		{ 2, "ring", &shapes[0], POLICY_FP32, FP32, .fused = true,
			.passes = 1, .delay_us = 200 },
		{ 2, "ring", &shapes[1], POLICY_BF16, BF16, .fused = true,
			.recompute = 1, .passes = 1, .delay_us = 200 },
		{ 2, "ring", &shapes[1], POLICY_BF16, BF16, .fused = true,
			.recompute = 3, .passes = 2 },
		{ 2, "owner", &shapes[2], POLICY_FP32, BF16, .sgd = true,
			.passes = 3, .delay_us = 100 },
		{ 3, "owner", &shapes[0], POLICY_BF16, FP32, .fused = true,
			.nested = true, .recompute = 1, .passes = 1, .delay_us = 200 },
		{ 3, "owner", &shapes[2], POLICY_BF16, BF16, .recompute = 2,
			.passes = 1 },
		{ 3, "owner", &shapes[1], POLICY_FP32, BF16, .fused = true,
			.clips = true, .passes = 2 },
		{ 4, "owner", &shapes[0], POLICY_BF16, BF16, .fused = true,
			.passes = 2 },
		{ 4, "owner", &shapes[1], POLICY_FP32, FP32, .clips = true,
			.recompute = 2, .passes = 1 },
		{ 2, "ring", &shapes[1], POLICY_BF16, BF16, .fused = true,
			.exchange = true, .passes = 1, .delay_us = 200 },
		{ 3, "owner", &shapes[0], POLICY_BF16, BF16, .fused = true,
			.exchange = true, .clips = true, .passes = 2 },
		{ 4, "ring", &shapes[2], POLICY_FP32, FP32, .fused = true, .sgd = true,
			.exchange = true, .passes = 1, .delay_us = 100 },
		{ 2, "ring", &shapes[0], POLICY_BF16_STATE, BF16, .fused = true,
			.passes = 1, .delay_us = 200 },
		{ 3, "owner", &shapes[1], POLICY_BF16_STATE, BF16, .fused = true,
			.exchange = true, .passes = 2 },
		{ 2, "ring", &shapes[1], POLICY_BF16_STREAM, BF16, .fused = true,
			.exchange = true, .recompute = 1, .passes = 1 },
		{ 3, "owner", &shapes[2], POLICY_BF16_STREAM, BF16, .passes = 1 },
		{ 1, "ring", &shapes[0], POLICY_BF16_STATE, BF16, .fused = true,
			.early = true, .passes = 1 },
		{ 2, "ring", &shapes[1], POLICY_BF16_STATE, BF16, .fused = true,
			.early = true, .exchange = true, .passes = 1, .delay_us = 200 },
		{ 2, "ring", &shapes[0], POLICY_FP32, FP32, .early = true,
			.recompute = 1, .passes = 1, .delay_us = 100 },
		{ 3, "owner", &shapes[0], POLICY_BF16, BF16, .fused = true,
			.early = true, .exchange = true, .passes = 1 },
		{ 4, "owner", &shapes[2], POLICY_BF16_STREAM, BF16, .fused = true,
			.early = true, .sgd = true, .passes = 1, .delay_us = 100 },
	};
	for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
		train_and_compare(&scenarios[i], "cpu");
}

// compare the weights of all stages
static void stages_agree_on_two_gpus(void **state)
{
	// list scenarios of stages on two GPUs
	Scenario scenarios[] = {
		{ 2, "auto", &shapes[3], POLICY_BF16, BF16, .fused = true,
			.replayed = true, .passes = 1 },
		{ 2, "push", &shapes[3], POLICY_BF16, BF16, .fused = true,
			.replayed = true, .recompute = 2, .passes = 1 },
		{ 2, "auto", &shapes[3], POLICY_FP32, FP32, .fused = true, .sgd = true,
			.clips = true, .replayed = true, .passes = 1, .delay_us = 200 },
		{ 2, "auto", &shapes[3], POLICY_FP32, BF16, .passes = 2 },
		{ 2, "push", &shapes[3], POLICY_BF16, BF16, .fused = true,
			.exchange = true, .replayed = true, .passes = 1 },
		{ 2, "push", &shapes[3], POLICY_FP32, FP32, .fused = true,
			.exchange = true, .clips = true, .passes = 2, .delay_us = 200 },
		{ 2, "push", &shapes[3], POLICY_BF16_STATE, BF16, .fused = true,
			.exchange = true, .replayed = true, .passes = 1 },
		{ 2, "auto", &shapes[3], POLICY_BF16_STREAM, BF16, .fused = true,
			.passes = 1 },
		{ 2, "push", &shapes[3], POLICY_BF16_STATE, BF16, .fused = true,
			.exchange = true, .early = true, .passes = 1 },
		{ 2, "auto", &shapes[3], POLICY_BF16, BF16, .fused = true,
			.early = true, .replayed = true, .passes = 1, .delay_us = 200 },
	};
	if (!have_gpus(2))
		skip();
	for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
		train_and_compare(&scenarios[i], "cuda:");
}

// look at the pieces of all ranks
typedef struct Seen {
	Scenario s;
	const ZeroSettings *plan;
	int *times;                      /* (count) */
} Seen;

static size_t offset_of(const Model *m, const Parameter *about)
{
	size_t n = 0;
	for (int i = 0; strcmp(m->params[i].about.name, about->name) != 0; i++)
		n += m->params[i].about.count;
	return n;
}

static void compare_piece(Device *d, const Optimizer *o, const ZeroPiece *p,
	size_t at, const real *weights)
{
	real *got = need(malloc(p->n * sizeof *got));
	array_read(d, got, p->master, p->n);
	if (memcmp(got, weights + at, p->n * sizeof *got) != 0)
		die("masters of %s", p->about->name);
	for (int k = 0; k < MOST_STATES; k++) {
		real *state = need(malloc(p->n * sizeof *state));
		array_read(d, got, p->state[k], p->n);
		array_read(d, state, array_part(d, o->state[k], at), p->n);
		if (memcmp(got, state, p->n * sizeof *got) != 0)
			die("state %d of %s", k, p->about->name);
		free(state);
	}
	free(got);
}

static double loss_of_doubled(Model *m, const Scenario *s)
{
	Batch b = part_of_batch(s->shape, 0, 0, 0);
	double loss = model_forward(m, b.tokens, b.targets, b.B, b.T, false);
	batch_free(&b);
	return loss;
}

static void double_weights(Device *d, Array w, size_t n)
{
	ops_for(d)->add(d, w, w, w, n);
}

static void see_pieces(Device *d, Comm *c, void *arg)
{
	Seen *seen = arg;
	Scenario *s = &seen->s;
	Model *m, *full = model_new(d, s->shape, &policies[s->policy], 7);
	Zero *z = new_zero(d, c, s, *seen->plan, &m);
	Ddp *ddp = ddp_new(full, c, &(DdpSettings){ DDP_FLAT, 0, s->wire, false });
	Optimizer o = adamw_new(full, 0, 0, 0, 0, 0);
	int rank = comm_rank(c), n = shape_nparameters(s->shape);
	real *weights = need(malloc(m->count * sizeof *weights));
	ZeroPiece *pieces = need(malloc(n * sizeof *pieces));
	o.settings = settings_of(s);
	// train by both, and list the pieces
	train(&(Trained){ full, &o, ddp, NULL, { 0 } }, s, rank);
	train(&(Trained){ m, zero_optimizer(z), NULL, z, { 0 } }, s, rank);
	zero_read_weights(z, weights);
	n = zero_pieces(z, pieces);
	// compare and double each piece
	for (int i = 0; i < n; i++) {
		size_t at = offset_of(m, pieces[i].about) + pieces[i].begin;
		compare_piece(d, &o, &pieces[i], at, weights);
		double_weights(d, pieces[i].master, pieces[i].n);
		for (size_t k = 0; k < pieces[i].n; k++)
			if (!pieces[i].replicated || rank == 0)
				__atomic_fetch_add(&seen->times[at + k], 1, __ATOMIC_RELAXED);
	}
	// compare the losses of doubled weights
	zero_weights_changed(z);
	for (int i = 0; i < shape_nparameters(s->shape); i++)
		double_weights(d, model_weight(full, i), full->params[i].about.count);
	double got = loss_of_doubled(m, s), want = loss_of_doubled(full, s);
	if (got != want)
		die("loss %.9g, not %.9g", got, want);
	free(weights);
	free(pieces);
	optimizer_free(&o);
	ddp_free(&ddp);
	zero_free(&z);
	model_free(&m);
	model_free(&full);
}

// look at the pieces of all ranks
static void pieces_tile_the_model(void **state)
{
	for (int i = 0; i < NPLANS; i++) {
		Seen seen = { { 1 + i % 4, "owner", &shapes[i % 3],
			i % 2 ? POLICY_BF16 : POLICY_FP32, FP32, .passes = 1 }, &plans[i],
			NULL };
		size_t n = shape_count(seen.s.shape);
		seen.times = shared(n * sizeof *seen.times);
		in_ranks(seen.s.ranks, by_owner, see_pieces, &seen);
		for (size_t k = 0; k < n; k++)
			assert_int_equal(seen.times[k], 1);
		munmap(seen.times, n * sizeof *seen.times);
	}
}

// refuse a policy that scales the loss
static void shard_it(Device *d, Comm *c, void *arg)
{
	Model *m;
	new_zero(d, c, arg, plans[0], &m);
}

static void expect_refused(int policy, const char *said)
{
	Scenario s = { 1, "ring", &shapes[0], policy, FP32, .fused = true,
		.passes = 1 };
	all_refuse(1, shard_it, &s, 2, said);
}

static void policies_that_cannot_be_sharded_are_refused(void **state)
{
	expect_refused(POLICY_FP16, "precision fp16: sharded data parallelism does "
		"not scale the loss");
	expect_refused(POLICY_TF32, "precision tf32: gathers carry no tf32");
}

TESTS(
	cmocka_unit_test(all_stages_give_the_bits_of_data_parallelism),
	cmocka_unit_test(stages_agree_on_two_gpus),
	cmocka_unit_test(pieces_tile_the_model),
	cmocka_unit_test(policies_that_cannot_be_sharded_are_refused))
