/* stages of ZeRO take the memory that they should, send the bytes that they
 * should, and run behind the passes */
#define _GNU_SOURCE
#include "tests/dist/stages.h"

// count the memory of each stage
static size_t lines(size_t elements)
{
	return (elements * sizeof(real) + 63) / 64 * 64;
}

/* elements of a unit's matrices, and of the slots of all groups */
static size_t padded_unit(const Scenario *s, int unit)
{
	Unit u = shape_unit(s->shape, unit);
	size_t n = 0, to = 64 * (size_t)s->ranks;
	for (int i = u.first; i < u.first + u.count; i++) {
		Parameter p = shape_parameter(s->shape, i);
		n += p.gain ? 0 : p.count;
	}
	return (n + to - 1) / to * to;
}

static size_t in_slots(const Scenario *s, int slots)
{
	size_t n = 0;
	for (int k = 0; k < slots; k++) {
		size_t most = 0;
		for (int u = k; u < shape_nunits(s->shape); u += slots)
			most = padded_unit(s, u) > most ? padded_unit(s, u) : most;
		n += lines(most);
	}
	return n;
}

typedef struct Memory {
	size_t parameter, gradient, optimizer;
} Memory;

static Memory predicted_memory(const Scenario *s, const ZeroSettings *plan)
{
	int nunits = shape_nunits(s->shape);
	bool low = s->fused && s->policy == POLICY_BF16, cast = s->wire == BF16
		&& s->policy == POLICY_FP32;
	size_t all = in_slots(s, nunits), shard = all / s->ranks,
		embedding = lines(padded_unit(s, 0)) / s->ranks;
	size_t gains = (2 * s->shape->layers + 1) * s->shape->d_model;
	Memory m = { .parameter = plan->stage < 3 ? all
		: in_slots(s, plan->prefetch + 1) };
	if (plan->stage == 3)
		m.parameter += shard + low * (shard - embedding);
	else if (low)
		m.parameter += shard - embedding;
	m.parameter += lines(gains);
	m.gradient = (1 + cast) * ((plan->stage == 1 ? all : in_slots(s, 2))
		+ lines(gains)) + (plan->stage > 1) * shard;
	if (plan->stage > 1 && s->passes > 1)
		m.gradient += all;
	m.optimizer = lines(1);
	return m;
}

static void expect_bytes(const char *what, size_t got, size_t want)
{
	if (got != want)
		die("%s: %zu bytes, not %zu", what, got, want);
}

static void measure_memory(Device *d, Comm *c, void *arg)
{
	Scenario *s = arg;
	for (int k = 0; k < NPLANS; k++) {
		Model *m;
		size_t before[NCATEGORIES];
		if (plans[k].bucket_mb > 0)
			continue;
		// make the engine, and count what was there before
		memcpy(before, d->active, sizeof before);
		m = model_new_bare(d, s->shape, &policies[s->policy], 7);
		size_t bare = d->active[MEM_PARAMETER] - before[MEM_PARAMETER];
		model_free(&m);
		Zero *z = new_zero(d, c, s, plans[k], &m);
		Memory want = predicted_memory(s, &plans[k]);
		// compare each category with the formula
		device_reset_peak(d);
		train(&(Trained){ m, zero_optimizer(z), NULL, z, { 0 } }, s,
			comm_rank(c));
		expect_bytes("parameters", d->peak[MEM_PARAMETER]
			- before[MEM_PARAMETER] - bare, want.parameter);
		expect_bytes("gradients", d->peak[MEM_GRADIENT] - before[MEM_GRADIENT],
			want.gradient);
		size_t n = zero_optimizer(z)->n;
		expect_bytes("the optimizer", d->peak[MEM_OPTIMIZER]
			- before[MEM_OPTIMIZER], want.optimizer + 2 * lines(n)
			+ lines(sizeof(AdamWStep) / sizeof(real)));
		size_t sum = (size_t)comm_sum(c, (double)(n - zero_map(z)->gains));
		expect_bytes("all shards", sum, m->count - zero_map(z)->gains);
		zero_free(&z);
		model_free(&m);
	}
}

// count the memory of each stage
static void memory_is_what_the_formula_says(void **state)
{
	Scenario scenarios[] = {
		{ 2, "ring", &shapes[0], POLICY_BF16, BF16, .fused = true, .passes = 1 },
		{ 3, "ring", &shapes[1], POLICY_FP32, BF16, .fused = true, .passes = 1 },
		{ 4, "ring", &shapes[2], POLICY_FP32, FP32, .passes = 2 },
	};
	for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
		in_ranks(scenarios[i].ranks, by_ring,
			measure_memory, &scenarios[i]);
}

// count the bytes that the stages send
static double all_sent(const Comm *c)
{
	double sum = 0;
	for (int kind = 0; kind < NCOLLECTIVES; kind++)
		sum += comm_sent(c, kind);
	return sum;
}

static double expected_bytes(const Scenario *s, const ZeroSettings *plan)
{
	int nunits = shape_nunits(s->shape), slots = plan->prefetch + 1;
	size_t wire = type_size(s->wire), all = 0, weights = 0, again = 0;
	for (int u = 0; u < nunits; u++) {
		size_t n = padded_unit(s, u), width = u > 0 && s->fused ? 2 : 4;
		all += n;
		weights += n * width;
		again += u < nunits - slots && (u > 0 || slots > 1) ? n * width : 0;
	}
	size_t gains = (2 * s->shape->layers + 1) * s->shape->d_model;
	return (1 - 1.0 / s->ranks) * ((all + 2 * gains) * wire + weights
		+ (plan->stage == 3 ? again : 0));
}

static void count_sent(Device *d, Comm *c, void *arg)
{
	const Scenario *s = arg;
	for (int k = 0; k < NPLANS; k++) {
		Model *m;
		if (plans[k].bucket_mb > 0)
			continue;
		// count the bytes of a step
		Zero *z = new_zero(d, c, s, plans[k], &m);
		Batch b = part_of_batch(s->shape, 0, comm_rank(c), 0);
		timed_step(m, zero_optimizer(z), &b, MODE_TRAIN);
		double before = all_sent(c);
		timed_step(m, zero_optimizer(z), &b, MODE_TRAIN);
		double got = all_sent(c) - before, want = expected_bytes(s, &plans[k]);
		if (!(fabs(got - want) < 1e-6 * want))
			die("stage %d, %d ahead: %.0f bytes, not %.0f", plans[k].stage,
				plans[k].prefetch, got, want);
		batch_free(&b);
		zero_free(&z);
		model_free(&m);
	}
}

// count the bytes that the stages send
static void bytes_are_what_the_formula_says(void **state)
{
	Scenario s = { 3, "ring", &shapes[1], POLICY_BF16, BF16, .fused = true,
		.passes = 1 };
	in_ranks(3, by_ring, count_sent, &s);
}

// see what runs behind the passes
typedef struct Watch {
	Zero *z;
	Hooks hooks;
	int weights, ahead, sums;        /* times that they were under way */
} Watch;

static void watch_before_unit(void *self, int unit, bool backward)
{
	Watch *w = self;
	const Zero *z = w->z;
	w->hooks.before_unit(w->hooks.self, unit, backward);
	if (backward)
		w->sums += !device_reached(z->device, z->settings.stage == 1 ? z->last
			: z->freed[(unit + 1) % GRADIENT_SLOTS]);
	else if (z->settings.stage < 3)
		w->weights += unit == 0
			&& !device_reached(z->device, z->groups[z->map.ngroups - 1].gathered);
	else
		w->ahead += z->prefetcher.holds[prefetcher_slot(&z->prefetcher,
			unit + 1)] == unit + 1;
}

static void watch_after_unit(void *self, int unit, bool backward)
{
	Watch *w = self;
	w->hooks.after_unit(w->hooks.self, unit, backward);
}

static void watch_before_update(void *self)
{
	Watch *w = self;
	w->hooks.before_update(w->hooks.self);
}

static void watch_after_update(void *self)
{
	Watch *w = self;
	w->hooks.after_update(w->hooks.self);
}

static void watch_steps(Device *d, Comm *c, void *arg)
{
	enum { WATCHED = 4 };
	const Scenario *s = arg;
	for (int k = 0; k < NPLANS; k++) {
		Model *m;
		if (plans[k].bucket_mb > 0)
			continue;
		// count what was under way in each step
		Watch w = { new_zero(d, c, s, plans[k], &m), m->hooks, 0, 0, 0 };
		m->hooks = (Hooks){ &w, watch_before_unit, watch_after_unit, NULL, 0,
			watch_before_update, watch_after_update };
		Batch b = part_of_batch(s->shape, 0, comm_rank(c), 0);
		for (int step = 0; step < WATCHED; step++)
			timed_step(m, zero_optimizer(w.z), &b, MODE_TRAIN);
		int ahead = plans[k].prefetch == 0 ? 0
			: (WATCHED - 1) * (shape_nunits(s->shape) - 1);
		bool on_demand = plans[k].stage == 3 && ahead == 0;
		if ((plans[k].stage < 3) != (w.weights > 0) || w.ahead != ahead
			|| (on_demand ? w.sums > WATCHED : w.sums == 0))
			die("stage %d, %d ahead: %d, %d, %d times", plans[k].stage,
				plans[k].prefetch, w.weights, w.ahead, w.sums);
		batch_free(&b);
		zero_free(&w.z);
		model_free(&m);
	}
}

// see what runs behind the passes
static void communication_runs_behind_the_passes(void **state)
{
	Scenario s = { 2, "ring", &shapes[1], POLICY_BF16, BF16, .fused = true,
		.passes = 1 };
	in_ranks(2, (CommSettings){ .transport = "ring", .delay_us = 5000 },
		watch_steps, &s);
}

TESTS(
	cmocka_unit_test(memory_is_what_the_formula_says),
	cmocka_unit_test(bytes_are_what_the_formula_says),
	cmocka_unit_test(communication_runs_behind_the_passes))
