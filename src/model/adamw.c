#include "model/adamw.h"

#include <math.h>

#include "model/internal.h"

AdamW adamw_new(Model *model, double lr, double beta1, double beta2, double eps,
	double decay)
{
	Device *d = model->device;
	AdamW a = {
		.m = array_new(d, model->count, TYPE_REAL, MEM_OPTIMIZER, "adamw m"),
		.v = array_new(d, model->count, TYPE_REAL, MEM_OPTIMIZER, "adamw v"),
		.step = { lr, beta1, beta2, eps, decay, 0 },
		.scalars = device_alloc(d, sizeof *a.scalars, MEM_OPTIMIZER,
			"adamw scalars"),
	};
	model->ops->fill(d, a.m, 0, model->count);
	model->ops->fill(d, a.v, 0, model->count);
	return a;
}

void adamw_free(AdamW *a, Model *model)
{
	array_drop(model, &a->m);
	array_drop(model, &a->v);
	device_free(model->device, a->scalars);
	a->scalars = NULL;
}

AdamWStep adamw_scalars(const AdamWSettings *s, double unscale)
{
	double first = 1 - pow(s->beta1, s->t), second = 1 - pow(s->beta2, s->t);
	return (AdamWStep){
		.keep = (real)(1 - s->lr * s->decay),
		.rate = (real)(s->lr * sqrt(second) / first),
		.beta1 = (real)s->beta1, .one_minus_beta1 = (real)(1 - s->beta1),
		.beta2 = (real)s->beta2, .one_minus_beta2 = (real)(1 - s->beta2),
		.eps = (real)s->eps, .unscale = (real)unscale,
	};
}

void adamw_begin(AdamW *a, Model *model)
{
	a->step.t++;
	AdamWStep scalars = adamw_scalars(&a->step, 1 / model->loss_scale);
	device_upload(model->device, a->scalars, &scalars, sizeof scalars);
}
static void update_each(const AdamW *a, Model *m)
{
	for (int i = 0; i < shape_nparameters(&m->shape); i++) {
		Parameter p = shape_parameter(&m->shape, i);
		m->ops->adamw(m->device, model_weight(m, i), model_gradient(m, i),
			array_part(m->device, a->m, p.offset),
			array_part(m->device, a->v, p.offset), p.count, a->scalars,
			m->nonfinite);
	}
}

void adamw_apply(const AdamW *a, Model *m)
{
	if (m->policy->op[OP_LINEAR].output == FP16)
		m->ops->count_nonfinite(m->device, m->nonfinite, m->gradients, m->count);
	if (!m->fused) {
		update_each(a, m);
		return;
	}
	Array low = m->compute_weights;
	if (low.at == m->weights.at)
		low.at = NULL;
	m->ops->fused_adamw(m->device, m->weights, low, m->gradients, a->m, a->v, m->count,
		a->scalars, m->nonfinite);
}
void adamw_finish(AdamW *a, Model *m)
{
	enum { PATIENCE = 2000 };
	int32_t bad = 0;
	if (m->policy->op[OP_LINEAR].output != FP16)
		return;
	device_download(m->device, &bad, m->nonfinite, sizeof bad);
	if (bad) {
		a->step.t--;
		a->good = 0;
		m->loss_scale /= 2;
	} else if (++a->good == PATIENCE) {
		a->good = 0;
		m->loss_scale *= 2;
	}
}

void adamw_step(AdamW *a, Model *model)
{
	adamw_begin(a, model);
	adamw_apply(a, model);
	adamw_finish(a, model);
}
