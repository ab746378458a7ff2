/* a sharded optimizer gives the bits of a whole one, with a share of its state */
#define _GNU_SOURCE
#include "dist/owners.h"
#include "dist/resume.h"
#include "tests/ops/compare.h"
#include "tests/dist/job.h"
#include "train/step.h"

// test how parameters are dealt out
static void deal(int n, int ranks, uint64_t seed, size_t most, size_t *loads)
{
	// draw the sizes of the arrays
	size_t counts[40] = { 0 }, want[8] = { 0 }, largest = 0, before = 0;
	int owners[40];
	for (int r = 0; r < ranks; r++)
		before += loads[r], want[r] = loads[r];
	for (int i = 0; i < n; i++) {
		counts[i] = random_bits(seed, 0, i) % most + 1;
		largest = counts[i] > largest ? counts[i] : largest;
	}
	share_out(counts, n, loads, ranks, owners);
	for (int i = 0; i < n; i++) {
		assert_true(owners[i] >= 0 && owners[i] < ranks);
		want[owners[i]] += counts[i];
	}
	size_t least = SIZE_MAX, full = 0;
	for (int r = 0; r < ranks; r++) {
		assert_int_equal(loads[r], want[r]);
		least = loads[r] < least ? loads[r] : least;
		full = loads[r] > full ? loads[r] : full;
	}
	assert_true(before > 0 || full - least <= largest);
}

// test how parameters are dealt out
static void shares_are_whole_and_even(void **state)
{
	const size_t counts[] = { 5, 9, 5, 1, 9 };
	size_t loads[3] = { 0 };
	int owners[5];
	share_out(counts, 5, loads, 3, owners);
	const int want[] = { 2, 0, 2, 0, 1 };
	assert_memory_equal(owners, want, sizeof want);
	share_out(counts, 1, loads, 3, owners);          /* 10, 9, 10 */
	assert_int_equal(owners[0], 1);
	for (int ranks = 1; ranks <= 8; ranks++)
		for (int n = 0; n <= 40; n += 1 + n / 3) {
			size_t kept[8] = { 0 };
			deal(n, ranks, n * 8 + ranks, n % 2 ? 1 : 5000, kept);
			deal(n / 2, ranks, n, 100, kept);
		}
}

// make parameters and their gradients
enum { STEPS = 12, MOST_PARAMS = 12, LONGEST = 1000 };

static const size_t counts[MOST_PARAMS] = { 300, 7, LONGEST, 1, 65, 513, 33, 3,
	900, 16, 70, 2 };

typedef struct OptimizerScenario {
	int nparams, groups;
	bool fused, clips, all_there;
	Type low;                        /* what matmuls read; FP32: the weights */
} OptimizerScenario;

/* parameters first(g) ... first(g + 1) - 1 are group g, which is added at step */
static int first(const OptimizerScenario *s, int group)
{
	return s->nparams * group / s->groups;
}

static int added(int group)
{
	return group * 4;
}

static bool frozen(const OptimizerScenario *s, int i)
{
	return !s->all_there && i % 5 == 3;
}

static bool there(const OptimizerScenario *s, int step, int i)
{
	return !frozen(s, i) && (s->all_there || random_bits(5, step, i) % 3 > 0);
}

static OptimizerSettings settings_of(const OptimizerScenario *s, int group,
	int step)
{
	return (OptimizerSettings){ .lr = 0.01 * (group + 1) / (step + 1),
		.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .decay = 0.1 * group,
		.momentum = 0.9, .clip = s->clips ? 0.5 + group : 0 };
}

static const OptimizerKind *kind_of(int group)
{
	return group % 2 ? &sgd_kind : &adamw_kind;
}

// take steps with and without shards
typedef struct Side {
	Device *d;
	const OptimizerScenario *s;
	Span spans[MOST_PARAMS];
	/* alone: an optimizer for each parameter; for each group where norms clip */
	Optimizer alone[MOST_PARAMS];
	ShardedOptimizer *sharded;       /* NULL: alone */
	int rank;
} Side;

static void new_span(Side *side, int i)
{
	real x[LONGEST];
	Span *p = &side->spans[i];
	p->n = counts[i];
	p->weight = array_new(side->d, p->n, FP32, MEM_PARAMETER, "weight");
	p->gradient = array_new(side->d, p->n, FP32, MEM_GRADIENT, "gradient");
	if (side->s->low != FP32)
		p->compute = array_new(side->d, p->n, side->s->low, MEM_PARAMETER,
			"compute");
	for (size_t k = 0; k < p->n; k++)
		x[k] = (real)random_truncated(7, i, k, 3);
	array_write(side->d, p->weight, x, p->n);
	if (p->compute.at)
		array_write(side->d, p->compute, x, p->n);
}

static void free_span(Device *d, const Span *p)
{
	device_free(d, p->weight.at);
	device_free(d, p->gradient.at);
	device_free(d, p->compute.at);
}

/* right: on the owner, and on all where norms clip */
static void write_gradient(Side *side, int step, int i, bool right)
{
	real x[LONGEST];
	for (size_t k = 0; k < counts[i]; k++)
		x[k] = right ? (real)random_truncated(step + 100, i, k, 3) : NAN;
	array_write(side->d, side->spans[i].gradient, x, counts[i]);
}

static void step_alone(Side *side, int step, int g)
{
	const OptimizerScenario *s = side->s;
	int end = first(s, g + 1), each = s->clips ? end - first(s, g) : 1;
	for (int i = first(s, g); i < end; i += each) {
		Optimizer *o = &side->alone[i];
		if (step == added(g))
			*o = optimizer_new(side->d, kind_of(g), settings_of(s, g, step),
				&side->spans[i], each, s->fused);
		o->settings = settings_of(s, g, step);
		for (int k = i; k < i + each; k++)
			write_gradient(side, step, k, true);
		if (there(s, step, i)) {
			optimizer_begin(o, 0.5);
			optimizer_apply(o, &side->spans[i], each, NULL);
		}
	}
}

static void add_group(Side *side, int g)
{
	enum { SCALARS = 64 };           /* bytes, with padding */
	const OptimizerScenario *s = side->s;
	ShardedParam params[MOST_PARAMS];
	size_t before = side->d->active[MEM_OPTIMIZER], own = 0;
	int begin = first(s, g), n = first(s, g + 1) - begin;
	for (int i = 0; i < n; i++)
		params[i] = (ShardedParam){ side->spans[begin + i],
			frozen(s, begin + i) };
	if (sharded_add_group(side->sharded, kind_of(g), settings_of(s, g, 0), params,
		n) != g)
		die("not group %d", g);
	for (int i = begin; i < begin + n; i++)
		if (sharded_owner(side->sharded, i) == side->rank)
			own += counts[i];
	size_t states = g % 2 ? 1 : 2, pads = own ? (states + 1) * SCALARS : 0,
		got = side->d->active[MEM_OPTIMIZER] - before,
		want = states * own * sizeof(real);
	if (got < want || got > want + pads)
		die("group %d: %zu bytes of state, not %zu", g, got, want);
}

/* an owner's gradient is absent with the parameter's; the others' at random */
static void step_sharded(Side *side, int step)
{
	const OptimizerScenario *s = side->s;
	Array gradients[MOST_PARAMS];
	for (int g = 0; g < s->groups; g++)
		if (step >= added(g)) {
			if (step == added(g))
				add_group(side, g);
			sharded_set(side->sharded, g, settings_of(s, g, step));
		}
	for (int i = 0; i < sharded_params(side->sharded); i++) {
		int owner = sharded_owner(side->sharded, i);
		bool right = s->clips || owner == side->rank,
			is_there = right ? there(s, step, i) : (step + i + side->rank) % 2;
		assert_true((owner < 0) == frozen(s, i));
		write_gradient(side, step, i, right);
		gradients[i] = is_there ? side->spans[i].gradient
			: (Array){ NULL, FP32 };
	}
	sharded_step(side->sharded, gradients, 0.5, NULL);
}

static void compare_sides(const Side *a, const Side *b, int step)
{
	real x[LONGEST], y[LONGEST];
	for (int i = 0; i < a->s->nparams; i++)
		for (int low = 0; low <= (a->s->low != FP32); low++) {
			const Span *p = &a->spans[i], *q = &b->spans[i];
			array_read(a->d, x, low ? p->compute : p->weight, p->n);
			array_read(a->d, y, low ? q->compute : q->weight, p->n);
			if (memcmp(x, y, p->n * sizeof *x) != 0)
				die("step %d, parameter %d%s", step, i, low ? ", low" : "");
		}
}

// test groups, frozen parameters and absent gradients
static void over_ring(Work *work, const void *arg, int delay_us)
{
	all_well(be_rank, &(Job){ "cpu", { .transport = "ring",
		.delay_us = delay_us }, work, (void *)arg });
}

static void take_steps(Device *d, Comm *c, void *arg)
{
	const OptimizerScenario *s = arg;
	Side alone = { .d = d, .s = s }, sharded = { .d = d, .s = s,
		.sharded = sharded_new(d, c, s->fused), .rank = comm_rank(c) };
	for (int i = 0; i < s->nparams; i++) {
		new_span(&alone, i);
		new_span(&sharded, i);
	}
	// take each step on both sides, and compare
	for (int step = 0; step < STEPS; step++) {
		for (int g = 0; g < s->groups && added(g) <= step; g++)
			step_alone(&alone, step, g);
		step_sharded(&sharded, step);
		compare_sides(&alone, &sharded, step);
	}
	// free both sides, and look for state that is left
	for (int i = 0; i < s->nparams; i++) {
		if (alone.alone[i].n > 0)
			optimizer_free(&alone.alone[i]);
		free_span(d, &alone.spans[i]);
		free_span(d, &sharded.spans[i]);
	}
	sharded_free(&sharded.sharded);
	if (d->active[MEM_OPTIMIZER] > 0)
		die("%zu bytes of state are left", d->active[MEM_OPTIMIZER]);
}

// test groups, frozen parameters and absent gradients
static void shards_change_no_bit(void **state)
{
	static const OptimizerScenario scenarios[] = {
		{ .nparams = MOST_PARAMS, .groups = 3, .low = FP32 },
		{ .nparams = MOST_PARAMS, .groups = 2, .fused = true, .low = BF16 },
		{ .nparams = 2, .groups = 1, .all_there = true, .low = FP32 },
		{ .nparams = 4, .groups = 3, .fused = true, .low = BF16 },
	};
	for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
		over_ring(take_steps, &scenarios[i], i % 2 * 300);
}

static void norms_are_those_of_the_group(void **state)
{
	static const OptimizerScenario s = { .nparams = MOST_PARAMS, .groups = 3,
		.clips = true, .all_there = true, .low = FP32 };
	over_ring(take_steps, &s, 0);
}

// train a model with and without shards
typedef struct OptimizerRun {
	int policy;
	bool fused, sgd, clips;
	double loss_scale;               /* at first; 0: the policy's */
} OptimizerRun;

static const Shape shape = { 31, 6, 12, 10, 2, 3, 4, 10000 };

static void take_model_step(Model *m, Optimizer *o, int step, int rank)
{
	Batch b = batch_random(2, shape.context, shape.vocab, step * 10 + rank);
	timed_step(m, o, &b, MODE_TRAIN);
	batch_free(&b);
}

/* returns how often the loss scale was halved, or less */
static int train(Device *d, Comm *c, const OptimizerRun *t, bool shards, real *to)
{
	Model *m = model_new(d, &shape, &policies[t->policy], 7 + comm_rank(c));
	if (t->fused)
		model_fuse(m);
	// make a trainer, with or without shards
	Trainer r = { .m = m, .o = &r.own, .ddp = ddp_new(m, c,
		&(DdpSettings){ DDP_BUCKETED, 0.001, FP32, false }) };
	OptimizerSettings settings = { .lr = 1e-2, .beta1 = 0.9, .beta2 = 0.999,
		.eps = 1e-8, .decay = 0.01, .momentum = 0.9, .clip = t->clips ? 0.5 : 0 };
	const OptimizerKind *kind = t->sgd ? &sgd_kind : &adamw_kind;
	if (shards) {
		r.sharded = sharded_model_new(m, c, kind, settings);
		r.o = sharded_model_optimizer(r.sharded);
	} else {
		r.own = t->sgd ? sgd_new(m, 1e-2, 0.9)
			: adamw_new(m, 1e-2, 0.9, 0.999, 1e-8, 0.01);
		r.own.settings = settings;
	}
	// train, with another rate in each step
	m->loss_scale = t->loss_scale > 0 ? t->loss_scale : m->loss_scale;
	double scale = m->loss_scale;
	for (int step = 0; step < 2 * STEPS; step++) {
		r.o->settings.lr = 1e-2 / (1 + step);
		take_model_step(m, r.o, step, comm_rank(c));
	}
	if (scale > m->loss_scale && r.o->t == 2 * STEPS)
		die("a skipped step was counted");
	read_weights(m, to);
	int halved = (int)log2(scale / m->loss_scale);
	trainer_free(&r);
	return halved;
}

// train a model with and without shards
static void train_twice(Device *d, Comm *c, void *arg)
{
	const OptimizerRun *t = arg;
	size_t n = shape_count(&shape);
	real *want = need(malloc(2 * n * sizeof *want)), *got = want + n;
	int skipped = train(d, c, t, false, want);
	if (train(d, c, t, true, got) != skipped)
		die("%s: other steps are skipped", policies[t->policy].name);
	if (t->loss_scale > 0 && (skipped < 2 || skipped > STEPS))
		die("%d steps are skipped", skipped);
	for (size_t i = 0; i < n; i++)
		if (!(want[i] == got[i]))
			die("%s, weight %zu: %g, not %g", policies[t->policy].name, i, got[i],
				want[i]);
	free(want);
}

static void a_model_trains_as_without_shards(void **state)
{
	static const OptimizerRun trainings[] = {
		{ POLICY_FP32, false, false, true, 0 },
		{ POLICY_FP32, true, true, false, 0 },
		{ POLICY_BF16, true, false, false, 0 },
		{ POLICY_BF16, false, false, false, 0 },
		{ POLICY_FP16, true, false, false, 1e9 },
	};
	for (size_t i = 0; i < sizeof trainings / sizeof *trainings; i++)
		over_ring(train_twice, &trainings[i], i % 2 * 200);
}

// refuse groups that differ
static void add_other_group(Device *d, Comm *c, void *arg)
{
	ShardedOptimizer *o = sharded_new(d, c, false);
	ShardedParam p = { { .weight = { d, FP32 }, .n = 3 }, comm_rank(c) == 1 };
	sharded_add_group(o, &adamw_kind, (OptimizerSettings){ 0 }, &p, 1);
}

static void ranks_add_equal_groups(void **state)
{
	all_refuse(2, add_other_group, NULL, 1, "adds other parameters");
}

TESTS(
	cmocka_unit_test(shares_are_whole_and_even),
	cmocka_unit_test(shards_change_no_bit),
	cmocka_unit_test(norms_are_those_of_the_group),
	cmocka_unit_test(a_model_trains_as_without_shards),
	cmocka_unit_test(ranks_add_equal_groups))
