/* a strategy that moves parameters and delays gradients changes no bit */
#define _GNU_SOURCE
#include <unistd.h>

#include "tests/ops/compare.h"
#include "train/step.h"

enum { SLOTS = 2 };

typedef struct StandIn {
	Model *m;
	Param *home;                     /* parameters between two steps */
	Array weights, compute, gradients;      /* that home points into */
	/* of the unit that runs */
	Array weight[SLOTS], low[SLOTS], gradient[SLOTS];
	bool fetches;
	int collected, updates;
	unsigned random;
} StandIn;

// fetch a unit and collect gradients, as a stand-in
static void nap(void *us)
{
	usleep((unsigned)(uintptr_t)us);
}

static void delay(StandIn *s)
{
	device_call(s->m->device, COMM, nap,
		(void *)(uintptr_t)(rand_r(&s->random) % 300));
}

static void move(StandIn *s, Array to, Array from, size_t n)
{
	Device *d = s->m->device;
	if (to.at)
		device_copy(d, COMM, to.at, from.at, n * d->backend->width(to.type));
}

static Array part(StandIn *s, Array a, size_t offset)
{
	return a.at ? array_part(s->m->device, a, offset) : a;
}

static void fetch(void *self, int unit, bool backward)
{
	StandIn *s = self;
	Device *d = s->m->device;
	Unit u = shape_unit(&s->m->shape, unit);
	int k = unit % SLOTS;
	device_wait(d, COMM, device_event(d, COMPUTE));     /* has left the slot */
	delay(s);
	move(s, s->weight[k], part(s, s->weights, u.offset), u.extent);
	move(s, s->low[k], part(s, s->compute, u.offset), u.extent);
	device_wait(d, COMPUTE, device_event(d, COMM));
	// point the unit's parameters at the slot
	for (int i = u.first; i < u.first + u.count; i++) {
		Param *p = &s->m->params[i];
		size_t offset = p->about.offset - u.offset;
		p->weight = part(s, s->weight[k], offset);
		p->gradient = part(s, s->gradient[k], offset);
		if (s->home[i].compute.at)
			p->compute.at = part(s, s->low[k].at ? s->low[k] : s->weight[k],
				offset).at;
	}
}

// fetch a unit and collect gradients, as a stand-in
static void forget(void *self, int unit, bool backward)
{
	StandIn *s = self;
	Unit u = shape_unit(&s->m->shape, unit);
	for (int i = u.first; i < u.first + u.count; i++) {
		Param *p = &s->m->params[i];
		p->weight.at = p->gradient.at = s;          /* nothing to be read */
		p->compute.at = p->compute.at ? s : NULL;
	}
}

static void collect(void *self, int first, int count)
{
	StandIn *s = self;
	Device *d = s->m->device;
	device_wait(d, COMM, device_event(d, COMPUTE));
	if (s->fetches)
		delay(s);
	for (int i = first; i < first + count; i++, s->collected++)
		move(s, s->home[i].gradient, s->m->params[i].gradient,
			s->home[i].about.count);
}

static void come_home(void *self)
{
	StandIn *s = self;
	int n = shape_nparameters(&s->m->shape);
	assert_int_equal(s->collected, n);
	s->collected = 0;
	device_wait(s->m->device, COMPUTE, device_event(s->m->device, COMM));
	memcpy(s->m->params, s->home, n * sizeof *s->home);
}

/* where nothing is fetched, all gradients are written into one slot */
static void use_slot(StandIn *s)
{
	for (int i = 0; i < shape_nparameters(&s->m->shape) && !s->fetches; i++)
		s->m->params[i].gradient = part(s, s->gradient[0],
			s->home[i].about.offset);
}

static void count_update(void *self)
{
	StandIn *s = self;
	assert_int_equal(s->collected, 0);
	s->updates++;
	use_slot(s);
}

// make the stand-in, and take its buffers away
static Array like(StandIn *s, Array a, size_t n)
{
	if (a.at)
		a = array_new(s->m->device, n, a.type, MEM_PARAMETER, "stand-in");
	return a;
}

static StandIn *stand_in_for(Model *m, bool fetches)
{
	StandIn *s = guarded(sizeof *s);
	int n = shape_nparameters(&m->shape);
	Array low = m->compute_weights, gradient = { m, m->policy->gradient };
	if (low.at == m->weights.at)
		low.at = NULL;
	*s = (StandIn){ .m = m, .home = guarded(n * sizeof *s->home),
		.fetches = fetches, .random = 1 };
	// move the weights into buffers of the stand-in
	s->weights = like(s, m->weights, m->extent);
	s->compute = like(s, low, m->extent);
	s->gradients = like(s, gradient, m->extent);
	m->ops->fill(m->device, s->gradients, 0, m->extent);
	device_wait(m->device, COMM, device_event(m->device, COMPUTE));
	move(s, s->weights, m->weights, m->extent);
	move(s, s->compute, low, m->extent);
	device_now_ms(m->device);
	// make the slots, and point parameters home
	for (int k = 0; k < SLOTS; k++) {
		s->weight[k] = like(s, m->weights, m->extent);
		s->low[k] = like(s, low, m->extent);
		s->gradient[k] = like(s, gradient, m->extent);
	}
	for (int i = 0; i < n; i++) {
		Param p = m->params[i];
		p.weight = part(s, s->weights, p.about.offset);
		p.gradient = part(s, s->gradients, p.about.offset);
		if (p.compute.at)
			p.compute.at = part(s, low.at ? s->compute : s->weights,
				p.about.offset).at;
		s->home[i] = m->params[i] = p;
	}
	use_slot(s);
	m->hooks = (Hooks){ .self = s, .before_unit = fetches ? fetch : NULL,
		.after_unit = fetches ? forget : NULL, .gradient_ready = collect,
		.before_update = come_home, .after_update = count_update };
	return s;
}

// make the stand-in, and take its buffers away
static void stand_in_free(StandIn *s)
{
	Array all[] = { s->weights, s->compute, s->gradients, s->weight[0],
		s->weight[1], s->low[0], s->low[1], s->gradient[0], s->gradient[1] };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		device_free(s->m->device, all[i].at);
}

// train with a stand-in and without
static const Shape shapes[] = {
	{ 101, 16, 36, 50, 3, 3, 12, 10000 },       /* gaps between its units */
	{ 256, 32, 64, 192, 2, 2, 32, 10000 },
};

typedef struct HookedRun {
	const Shape *shape;
	const Policy *policy;
	bool fused, replayed, fetches;
	int recompute;
} HookedRun;

enum { TRAINED = 6 };            /* steps */

/* the losses of the steps and the weights after them, on the host */
static real *trained(const HookedRun *r, const char *device, bool moved)
{
	Device *d = device_open(device);
	Model *m = model_new(d, r->shape, r->policy, 3);
	if (r->fused)
		model_fuse(m);
	model_recompute(m, r->recompute, false);
	StandIn *s = moved ? stand_in_for(m, r->fetches) : NULL;
	Optimizer o = adamw_new(m, 1e-2, 0.9, 0.999, 1e-8, 0.01);
	Replay replay = { 0 };
	real *got = guarded((TRAINED + m->count) * sizeof *got), *to = got;
	// take the steps, and note their losses
	for (int step = 0; step < TRAINED; step++) {
		Batch b = batch_random(3, r->shape->context, r->shape->vocab, step);
		StepTime t = r->replayed ? replayed_step(&replay, m, &o, &b, MODE_TRAIN)
			: timed_step(m, &o, &b, MODE_TRAIN);
		*to++ = (real)t.loss;
		batch_free(&b);
	}
	// read the weights behind the losses
	for (int i = 0; i < shape_nparameters(r->shape); i++) {
		size_t n = m->params[i].about.count;
		array_read(d, to, model_weight(m, i), n);
		to += n;
	}
	replay_free(&replay, d);
	optimizer_free(&o);
	if (s) {
		assert_int_equal(s->updates, TRAINED);
		stand_in_free(s);
	}
	model_free(&m);
	device_close(&d);
	return got;
}

// train with a stand-in and without
static void compare_runs(const char *device)
{
	for (int i = 0; i < 2 * NPOLICIES * 2 * 2 * 2 * 2; i++) {
		HookedRun r = { &shapes[i % 2], &policies[i / 2 % NPOLICIES],
			i / 2 / NPOLICIES % 2, i / 4 / NPOLICIES % 2,
			i / 8 / NPOLICIES % 2, i / 16 / NPOLICIES % 2 * 2 };
		size_t n = TRAINED + shape_count(r.shape);
		if (r.replayed && strcmp(device, "cpu") == 0)
			continue;                       /* it has no graphs */
		// compare losses and weights bit for bit
		real *want = trained(&r, device, false), *got = trained(&r, device, true);
		for (size_t k = 0; k < n; k++)
			assert_true(isfinite(want[k]));
		if (memcmp(want, got, n * sizeof *got) != 0)
			fail_msg("%s, shape %d, %s, %s, %s, %s, %d recomputed", device, i % 2,
				r.policy->name, fusion_names[r.fused],
				r.replayed ? "replayed" : "timed",
				r.fetches ? "fetched" : "in place", r.recompute);
		assert_int_equal(release(NULL), 0);
	}
}

// train with a stand-in and without
static void nothing_changes_on_the_cpu(void **state)
{
	compare_runs("cpu");
}

static void nothing_changes_on_a_gpu(void **state)
{
	Device *d = device_open("auto");
	bool gpu = strcmp(d->backend->name, "cuda") == 0;
	device_close(&d);
	if (!gpu)
		skip();
	compare_runs("cuda");
}

TESTS(
	cmocka_unit_test(nothing_changes_on_the_cpu),
	cmocka_unit_test(nothing_changes_on_a_gpu))
