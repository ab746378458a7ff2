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

StepTime timed_step(Model *m, AdamW *adamw, const Batch *b, Mode mode)
{
	StepTime t = { 0 };
	double start = device_now_ms(m->device);
	device_range_push(m->device, "forward");
	t.loss = model_forward(m, b->tokens, b->targets, b->B, b->T,
		mode != MODE_FORWARD);
	device_range_pop(m->device);
	double forward = device_now_ms(m->device), backward = forward,
		end = forward;
	if (mode != MODE_FORWARD) {
		device_range_push(m->device, "backward");
		model_backward(m, false);
		device_range_pop(m->device);
		backward = end = device_now_ms(m->device);
	}
	if (mode == MODE_TRAIN) {
		device_range_push(m->device, "optimizer");
		adamw_step(adamw, m);
		device_range_pop(m->device);
		end = device_now_ms(m->device);
	}
	t.fwd_ms = forward - start, t.bwd_ms = backward - forward,
		t.opt_ms = end - backward, t.step_ms = end - start;
	return t;
}

double forward_flops(const Shape *s, size_t B, size_t T)
{
	double N = (double)B * T, C = s->d_model, F = s->d_ff, L = s->layers,
		V = s->vocab;
	return 2 * N * (L * (4 * C * C + 3 * C * F) + V * C) + 4 * N * T * C * L;
}

double training_bytes(const Shape *s, size_t B, size_t T)
{
	double N = (double)B * T, C = s->d_model, F = s->d_ff, L = s->layers,
		V = s->vocab;
	double block = 8 * C + s->heads * (double)T + 3 * F + 2,
		top = 2 * C + V + 3;
	return sizeof(real) * (2.0 * shape_count(s) + N * (L * block + top));
}
