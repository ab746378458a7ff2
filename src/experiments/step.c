#include "experiments/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void row_set_time(Row *row, const char *phase, Stats ms)
{
	char name[32];
	snprintf(name, sizeof name, "%s_ms", phase);
	row_set(row, name, "%.4f", ms.median);
	snprintf(name, sizeof name, "%s_sd_ms", phase);
	row_set(row, name, "%.4f", ms.sd);
}
int studied_sizes(void)
{
	return harness_on_gpu() ? NSIZES : NTRAINED;
}

Shape scaled_down(Shape s)
{
	enum { HALF = SCALE / 2 };
	s.vocab /= HALF, s.d_model /= HALF, s.d_ff /= HALF, s.layers /= HALF;
	return s;
}

Shape row_shape(const Row *row)
{
	Shape s = *shape_find(row_text(row, "size"));
	if (!harness_on_gpu())
		s = scaled_down(s);
	s.context = row_int(row, "context");
	return s;
}

Training training_of(const Row *row, size_t B, bool with_adamw)
{
	Shape shape = row_shape(row);
	Training t = { .m = model_new(harness_device(), &shape,
		policy_find(row_text(row, "precision")), harness_seed) };
	if (strcmp(row_text(row, "fusion"), "fused") == 0)
		model_fuse(t.m);
	if (with_adamw)
		t.adamw = adamw_new(t.m, 1e-3, 0.9, 0.999, 1e-8, 0.01);
	t.batch = batch_random(B, shape.context, shape.vocab, harness_seed);
	return t;
}

void training_free(Training *t)
{
	batch_free(&t->batch);
	if (t->adamw.scalars)
		adamw_free(&t->adamw, t->m);
	model_free(&t->m);
}

double forward_flops(const Shape *s, size_t B, size_t T)
{
	double N = (double)B * T, C = s->d_model, F = s->d_ff, L = s->layers,
		V = s->vocab;
	return 2 * N * (L * (4 * C * C + 3 * C * F) + V * C) + 4 * N * T * C * L;
}
