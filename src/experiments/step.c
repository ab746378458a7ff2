#include "experiments/step.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/random.h"

Batch batch_random(size_t B, size_t T, long vocab, uint64_t seed)
{
	Batch b = { B, T, need(malloc(B * T * sizeof(int32_t))),
		need(malloc(B * T * sizeof(int32_t))) };
	for (size_t i = 0; i < B * T; i++) {
		b.tokens[i] = (int32_t)(random_bits(seed, 1, i) % vocab);
		b.targets[i] = (int32_t)(random_bits(seed, 2, i) % vocab);
	}
	return b;
}

void batch_free(Batch *b)
{
	free(b->tokens);
	free(b->targets);
}

typedef struct Step {
	Model *m;
	AdamW *adamw;
	Mode mode;
} Step;

static void queue_phases(void *arg)
{
	const Step *s = arg;
	Device *d = s->m->device;
	device_event_record(d, 0);
	RANGE(d, "forward")
		model_run(s->m, s->mode != MODE_FORWARD);
	device_event_record(d, 1);
	if (s->mode != MODE_FORWARD)
		RANGE(d, "backward")
			model_backward(s->m, false);
	device_event_record(d, 2);
	if (s->mode == MODE_TRAIN)
		RANGE(d, "optimizer")
			adamw_apply(s->adamw, s->m);
	device_event_record(d, 3);
}
static void begin(const Step *s, const Batch *b)
{
	model_load(s->m, b->tokens, b->targets, b->B, b->T);
	if (s->mode == MODE_TRAIN)
		adamw_begin(s->adamw, s->m);
}

static StepTime finish(const Step *s)
{
	Device *d = s->m->device;
	StepTime t = { .loss = model_loss(s->m) };
	t.fwd_ms = device_event_elapsed_ms(d, 0, 1);
	if (s->mode != MODE_FORWARD)
		t.bwd_ms = device_event_elapsed_ms(d, 1, 2);
	if (s->mode == MODE_TRAIN) {
		t.opt_ms = device_event_elapsed_ms(d, 2, 3);
		adamw_finish(s->adamw, s->m);
	}
	t.step_ms = t.fwd_ms + t.bwd_ms + t.opt_ms;
	return t;
}

StepTime timed_step(Model *m, AdamW *adamw, const Batch *b, Mode mode)
{
	Step s = { m, adamw, mode };
	StepTime t = { 0 };
	RANGE(m->device, "step") {
		begin(&s, b);
		queue_phases(&s);
		t = finish(&s);
	}
	return t;
}
StepTime replayed_step(Replay *r, Model *m, AdamW *adamw, const Batch *b,
	Mode mode)
{
	Step s = { m, adamw, mode };
	if (m->device->backend->graph_begin == NULL || !r->warm) {
		r->warm = true;
		return timed_step(m, adamw, b, mode);
	}
	StepTime t = { 0 };
	RANGE(m->device, "step") {
		begin(&s, b);
		if (r->loss_scale != m->loss_scale)
			device_graph_destroy(m->device, &r->graph);
		if (r->graph == NULL)
			r->graph = device_graph_capture(m->device, queue_phases, &s,
				&r->kernels);
		r->loss_scale = m->loss_scale;
		device_graph_launch(m->device, r->graph);
		t = finish(&s);
	}
	return t;
}

void replay_free(Replay *r, Device *device)
{
	device_graph_destroy(device, &r->graph);
}

int step_kernels(Model *m, AdamW *adamw, Mode mode)
{
	Step s = { m, adamw, mode };
	int kernels = 0;
	void *graph = device_graph_capture(m->device, queue_phases, &s, &kernels);
	device_graph_destroy(m->device, &graph);
	return kernels;
}
StepStats timed_steps(Model *m, AdamW *adamw, const Batch *b, Mode mode,
	bool replay, long warmup, long steps)
{
	Replay record = { 0 };
	int n = (int)steps;
	double *ms = need(malloc(4 * steps * sizeof *ms)), first = 0, last = 0;
	for (long i = -warmup; i < n; i++) {
		StepTime t = { 0 };
		RANGE(m->device, i < 0 ? "warm-up" : "measured")
			t = replay ? replayed_step(&record, m, adamw, b, mode)
				: timed_step(m, adamw, b, mode);
		first = i == -warmup ? t.loss : first;
		last = t.loss;
		if (i >= 0)
			ms[i] = t.fwd_ms, ms[n + i] = t.bwd_ms, ms[2 * n + i] = t.opt_ms,
				ms[3 * n + i] = t.step_ms;
	}
	replay_free(&record, m->device);
	if (mode != MODE_TRAIN && last != first)
		die("the loss changed from %.9g to %.9g between equal passes", first, last);
	if (mode == MODE_TRAIN && warmup + n > 1 && !(last < first))
		die("training did not lower the loss: %.9g, then %.9g", first, last);
	StepStats s = { stats_of(ms, n), stats_of(ms + n, n),
		stats_of(ms + 2 * n, n), stats_of(ms + 3 * n, n), last };
	free(ms);
	return s;
}
