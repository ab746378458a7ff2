#include "model/adamw.h"

#include "model/internal.h"

AdamW adamw_new(Model *model, double lr, double beta1, double beta2, double eps,
	double decay)
{
	AdamW a = {
		.m = array_new(model, model->count, TYPE_REAL, MEM_OPTIMIZER,
			"adamw m"),
		.v = array_new(model, model->count, TYPE_REAL, MEM_OPTIMIZER,
			"adamw v"),
		.step = { lr, beta1, beta2, eps, decay, 0 },
	};
	model->ops->fill(a.m, 0, model->count);
	model->ops->fill(a.v, 0, model->count);
	return a;
}

void adamw_step(AdamW *a, Model *model)
{
	a->step.t++;
	model->ops->adamw(model->weights, model->gradients, a->m, a->v,
		model->count, a->step);
}

void adamw_free(AdamW *a, Model *model)
{
	array_drop(model, &a->m);
	array_drop(model, &a->v);
}
