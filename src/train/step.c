#include "train/step.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/grow.h"
#include "model/fp8.h"

// update the weights
static bool scales_loss(const Model *m)
{
	return m->policy->op[OP_LINEAR].output == FP16;
}

static void before_update(Model *m)
{
	if (m->hooks.before_update)
		m->hooks.before_update(m->hooks.self);
}

static void after_update(Model *m)
{
	if (m->hooks.after_update)
		m->hooks.after_update(m->hooks.self);
}

// queue the update of the model
static void queue_update(Model *m, const Optimizer *o)
{
	fp8_advance(m);
	if (o->spans) {
		assert(!scales_loss(m));
		optimizer_apply(o, o->spans, o->nspans, m->nonfinite);
		fp8_weights_changed(m);
		return;
	}
	Span *spans = need(malloc(shape_nparameters(&m->shape) * sizeof *spans));
	int n = model_spans(m, spans);
	for (int i = 0; i < n && scales_loss(m); i++) {
		Gradients g = optimizer_gradients(o, &spans[i]);
		for (int k = 0; k < g.n; k++)
			m->ops->count_nonfinite(m->device, m->nonfinite, g.at[k],
				spans[i].n);
	}
	optimizer_apply(o, spans, n, m->nonfinite);
	free(spans);
	if (optimizer_writes_codes(o))
		fp8_updated(m);
	else
		fp8_weights_changed(m);
}

// adapt the loss scale
/* under fp16 waits for the device and changes the scale; else does nothing */
static void adapt_loss_scale(Model *m, Optimizer *o)
{
	enum { PATIENCE = 2000 };
	int32_t bad = 0;
	if (!scales_loss(m))
		return;
	device_download(m->device, &bad, m->nonfinite, sizeof bad);
	if (bad) {
		o->t--;
		m->good_steps = 0;
		m->loss_scale /= 2;
	} else if (++m->good_steps == PATIENCE) {
		m->good_steps = 0;
		m->loss_scale *= 2;
	}
}

void update_weights(Model *m, Optimizer *o)
{
	optimizer_begin(o, 1 / m->loss_scale);
	before_update(m);
	queue_update(m, o);
	after_update(m);
	adapt_loss_scale(m, o);
}

// queue the phases of a step
typedef struct Step {
	Model *m;
	Optimizer *o;
	Mode mode;
} Step;

static void queue_phases(void *arg)
{
	const Step *s = arg;
	Device *d = s->m->device;
	device_stamp(d, COMPUTE, 0);
	RANGE(d, "forward")
		model_run(s->m, s->mode != MODE_FORWARD);
	device_stamp(d, COMPUTE, 1);
	if (s->mode != MODE_FORWARD)
		RANGE(d, "backward")
			model_backward(s->m, false);
	if (s->mode == MODE_TRAIN)
		before_update(s->m);
	device_stamp(d, COMPUTE, 2);
	if (s->mode == MODE_TRAIN) {
		RANGE(d, "optimizer")
			queue_update(s->m, s->o);
		after_update(s->m);
	}
	device_stamp(d, COMPUTE, 3);
}

// time a step
static void begin(const Step *s, const Batch *b)
{
	model_load(s->m, b->tokens, b->targets, b->B, b->T);
	if (s->mode == MODE_TRAIN)
		optimizer_begin(s->o, 1 / s->m->loss_scale);
}

static StepTime finish(const Step *s)
{
	Device *d = s->m->device;
	StepTime t = { .loss = model_loss(s->m) };
	t.fwd_ms = device_stamped_ms(d, 0, 1);
	if (s->mode != MODE_FORWARD)
		t.bwd_ms = device_stamped_ms(d, 1, 2);
	if (s->mode == MODE_TRAIN) {
		t.opt_ms = device_stamped_ms(d, 2, 3);
		adapt_loss_scale(s->m, s->o);
	}
	t.step_ms = t.fwd_ms + t.bwd_ms + t.opt_ms;
	return t;
}

StepTime timed_step(Model *m, Optimizer *o, const Batch *b, Mode mode)
{
	Step s = { m, o, mode };
	StepTime t = { 0 };
	RANGE(m->device, "step") {
		begin(&s, b);
		queue_phases(&s);
		t = finish(&s);
	}
	return t;
}

// record a step and replay it
typedef struct Recorder {
	Replay *r;
	Device *device;
	Hooks hooks;                     /* the model's */
	const RankGroup *group;
	HookListener listener;
	/* gradients of the graph that is being captured */
	Action *announced;
	int nannounced;
} Recorder;

// do an action and remember it
static void perform(Device *d, const Hooks *h, const RankGroup *g,
	const Action *a)
{
	switch (a->kind) {
	case LAUNCH:
		device_graph_launch(d, a->graph);
		break;
	case HOOK:
		hooks_call(h, &a->call);
		break;
	case GROUP_START:
		g->start(g->self, &a->op, a->slot);
		break;
	case GROUP_JOIN:
		g->join(g->self, a->slot);
		break;
	}
}

static Action *append(Action *list, int *n, Action a)
{
	list = grow(list, *n, sizeof *list);
	list[(*n)++] = a;
	return list;
}

static void perform_and_record(Recorder *c, Action a)
{
	perform(c->device, &c->hooks, c->group, &a);
	c->r->actions = append(c->r->actions, &c->r->nactions, a);
}

// cut the recording at hooks
static void end_graph(Recorder *c)
{
	int kernels = 0;
	void *graph = device_graph_end(c->device, &kernels);
	c->r->kernels += kernels;
	if (graph)
		perform_and_record(c, (Action){ .kind = LAUNCH, .graph = graph });
	for (int i = 0; i < c->nannounced; i++)
		perform_and_record(c, c->announced[i]);
	c->nannounced = 0;
}

static void end_graph_and_perform(Recorder *c, Action a)
{
	end_graph(c);
	perform_and_record(c, a);
	device_graph_begin(c->device);
}

// hooks that end a graph
static void record_call(void *self, const HookCall *call)
{
	Recorder *c = self;
	const Action a = { .kind = HOOK, .call = *call };
	if (call->kind == GRADIENT_READY) {
		c->announced = append(c->announced, &c->nannounced, a);
	} else if (hooks_have(&c->hooks, call->kind)) {
		end_graph_and_perform(c, a);
	} else if (c->nannounced > 0) {
		end_graph(c);
		device_graph_begin(c->device);
	}
}

// put recording hooks in the place of the model's
static Hooks recording_hooks(Recorder *c)
{
	bool wanted[AFTER_UPDATE + 1];
	for (HookKind k = BEFORE_UNIT; k <= AFTER_UPDATE; k++)
		wanted[k] = hooks_have(&c->hooks, k);
	wanted[AFTER_UNIT] |= wanted[GRADIENT_READY];
	c->listener = (HookListener){ c, record_call };
	Hooks h = hooks_heard_by(&c->listener, wanted);
	h.spare_sms = c->hooks.spare_sms;
	return h;
}

// cut the recording at collectives of a group
static void record_start(void *self, const GroupOp *op, GroupSlot slot)
{
	end_graph_and_perform(self, (Action){ .kind = GROUP_START, .op = *op,
		.slot = slot });
}

static void record_join(void *self, GroupSlot slot)
{
	end_graph_and_perform(self, (Action){ .kind = GROUP_JOIN, .slot = slot });
}

static RankGroup recording_group(Recorder *c)
{
	RankGroup g = { 0 };
	if (c->group)
		g = *c->group;
	g.self = c;
	g.start = record_start;
	g.join = record_join;
	return g;
}

// record a step
static void record_step(Replay *r, Step *s)
{
	Recorder recorder = { .r = r, .device = s->m->device, .hooks = s->m->hooks,
		.group = s->m->group };
	RankGroup group = recording_group(&recorder);
	s->m->hooks = recording_hooks(&recorder);
	s->m->group = recorder.group ? &group : NULL;
	device_graph_begin(s->m->device);
	queue_phases(s);
	end_graph(&recorder);
	free(recorder.announced);
	s->m->hooks = recorder.hooks;
	s->m->group = recorder.group;
	r->loss_scale = s->m->loss_scale;
}

StepTime replayed_step(Replay *r, Model *m, Optimizer *o, const Batch *b,
	Mode mode)
{
	Step s = { m, o, mode };
	if (!device_has_graphs(m->device) || !r->warm) {
		r->warm = true;
		return timed_step(m, o, b, mode);
	}
	StepTime t = { 0 };
	RANGE(m->device, "step") {
		begin(&s, b);
		if (r->loss_scale != m->loss_scale)
			replay_free(r, m->device);
		if (r->nactions == 0)
			record_step(r, &s);
		else
			for (int i = 0; i < r->nactions; i++)
				perform(m->device, &m->hooks, m->group, &r->actions[i]);
		t = finish(&s);
	}
	return t;
}

// free a replay
void replay_free(Replay *r, Device *device)
{
	for (int i = 0; i < r->nactions; i++)
		if (r->actions[i].kind == LAUNCH)
			device_graph_destroy(device, &r->actions[i].graph);
	free(r->actions);
	r->actions = NULL;
	r->nactions = r->kernels = 0;
}

// count the kernels of a step
int step_kernels(Model *m, Optimizer *o, Mode mode)
{
	Step s = { m, o, mode };
	int kernels = 0;
	void *graph = device_graph_capture(m->device, queue_phases, &s, &kernels);
	device_graph_destroy(m->device, &graph);
	return kernels;
}

// time steps of one batch
StepStats timed_steps(Model *m, Optimizer *o, const Batch *b, Mode mode,
	bool replay, long warmup, long steps)
{
	Replay record = { 0 };
	int n = (int)steps;
	double *ms = need(malloc(4 * steps * sizeof *ms)), first = 0, last = 0;
	for (long i = -warmup; i < n; i++) {
		StepTime t = { 0 };
		RANGE(m->device, i < 0 ? "warm-up" : "measured")
			t = replay ? replayed_step(&record, m, o, b, mode)
				: timed_step(m, o, b, mode);
		first = i == -warmup ? t.loss : first;
		last = t.loss;
		if (i >= 0)
			ms[i] = t.fwd_ms, ms[n + i] = t.bwd_ms, ms[2 * n + i] = t.opt_ms,
				ms[3 * n + i] = t.step_ms;
	}
	replay_free(&record, m->device);
	// refuse the result if the losses are wrong
	if (mode != MODE_TRAIN && last != first)
		die("the loss changed from %.9g to %.9g between equal passes", first, last);
	if (mode == MODE_TRAIN && warmup + n > 1 && !(last < first))
		die("training did not lower the loss: %.9g, then %.9g", first, last);
	StepStats s = { stats_of(ms, n), stats_of(ms + n, n),
		stats_of(ms + 2 * n, n), stats_of(ms + 3 * n, n), last };
	free(ms);
	return s;
}
