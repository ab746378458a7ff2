#include "bench/training.h"

#include <stdio.h>

// choose sizes and shapes
int studied_sizes(void)
{
	return harness_on_gpu() ? NSIZES : NTRAINED;
}

Shape scaled_down(Shape s)
{
	enum { HALF = SCALE / 2 };
	s.vocab /= HALF, s.d_model /= HALF, s.d_head /= HALF, s.d_ff /= HALF;
	s.layers /= HALF;
	return s;
}

Shape studied_shape(int size, long context)
{
	Shape s = model_sizes[size].shape;
	if (!harness_on_gpu())
		s = scaled_down(s);
	s.context = context;
	return s;
}

long scaled_context(long context)
{
	return harness_on_gpu() ? context : context / SCALE;
}

long studied_context(int which)
{
	static const long contexts[NCONTEXTS] = { 128, 256, 512, 1024 };
	return scaled_context(contexts[which]);
}

// make what a configuration trains
Training training_of(const ModelConfig *c, size_t B, bool with_adamw)
{
	return training_on(harness_device(), c, B, with_adamw);
}

Training training_on(Device *device, const ModelConfig *c, size_t B,
	bool with_adamw)
{
	Shape shape = studied_shape(c->size, c->context);
	Training t = { .m = model_new(device, &shape, &policies[c->precision],
		harness_seed) };
	if (c->fusion == FUSION_FUSED)
		model_fuse(t.m);
	else if (c->fusion == FUSION_JIT)
		model_keep_compute(t.m);
	model_follow(t.m, &c->plan);
	if (with_adamw)
		t.adamw = adamw_new(t.m, 1e-3, 0.9, 0.999, 1e-8, 0.01);
	t.batch = batch_random(B, shape.context, shape.vocab, harness_seed);
	return t;
}

void training_free(Training *t)
{
	batch_free(&t->batch);
	if (t->adamw.scalars)
		optimizer_free(&t->adamw);
	model_free(&t->m);
}

void row_set_time(Row *row, const char *phase, Stats ms)
{
	char name[32];
	snprintf(name, sizeof name, "%s_ms", phase);
	row_set(row, name, "%.4f", ms.median);
	snprintf(name, sizeof name, "%s_sd_ms", phase);
	row_set(row, name, "%.4f", ms.sd);
}

void row_set_steps(Row *row, const StepStats *s)
{
	row_set_time(row, "fwd", s->fwd);
	row_set_time(row, "bwd", s->bwd);
	row_set_time(row, "step", s->step);
}
