#include "train/optimizer.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct OptimizerKind {
	const char *states[MOST_STATES];    /* their names; NULL: no more */
	const char *scalars_name;
	size_t scalars_bytes, unscale;      /* unscale: where it is in them */
	void (*scalars)(const Optimizer *o, double unscale, void *scalars);
	void (*update)(const Optimizer *o, const Span *s, Gradients g,
		const Array *state, const int32_t *skip);
};

// update by AdamW
AdamWStep adamw_scalars(const OptimizerSettings *s, long t, double unscale)
{
	double first = 1 - pow(s->beta1, t), second = 1 - pow(s->beta2, t);
	return (AdamWStep){
		.keep = (real)(1 - s->lr * s->decay),
		.rate = (real)(s->lr * sqrt(second) / first),
		.beta1 = (real)s->beta1, .one_minus_beta1 = (real)(1 - s->beta1),
		.beta2 = (real)s->beta2, .one_minus_beta2 = (real)(1 - s->beta2),
		.eps = (real)s->eps, .unscale = (real)unscale,
	};
}

static void set_adamw_scalars(const Optimizer *o, double unscale, void *scalars)
{
	*(AdamWStep *)scalars = adamw_scalars(&o->settings, o->t, unscale);
}

static void update_by_adamw(const Optimizer *o, const Span *s, Gradients g,
	const Array *state, const int32_t *skip)
{
	const Ops *ops = ops_for(o->device);
	assert(o->fused || g.n == 1);
	if (s->codes && o->fused)
		ops->fp8_adamw(o->device, s->weight, g, state[0], state[1], o->scalars,
			skip, *s->codes);
	else if (o->fused)
		ops->fused_adamw(o->device, s->weight, s->compute, g, state[0],
			state[1], s->n, o->scalars, skip);
	else
		ops->adamw(o->device, s->weight, s->compute, s->gradient, state[0],
			state[1], s->n, o->scalars, skip);
}

const OptimizerKind adamw_kind = { { "adamw m", "adamw v" }, "adamw scalars",
	sizeof(AdamWStep), offsetof(AdamWStep, unscale), set_adamw_scalars,
	update_by_adamw };

// update by SGD
static void set_sgd_scalars(const Optimizer *o, double unscale, void *scalars)
{
	*(SgdStep *)scalars = (SgdStep){ .rate = (real)o->settings.lr,
		.momentum = (real)o->settings.momentum, .unscale = (real)unscale };
}

static void update_by_sgd(const Optimizer *o, const Span *s, Gradients g,
	const Array *state, const int32_t *skip)
{
	ops_for(o->device)->sgd(o->device, s->weight, s->compute, g, state[0], s->n,
		o->scalars, skip);
}

bool optimizer_writes_codes(const Optimizer *o)
{
	return o->kind == &adamw_kind && o->fused;
}

const OptimizerKind sgd_kind = { { "sgd velocity" }, "sgd scalars",
	sizeof(SgdStep), offsetof(SgdStep, unscale), set_sgd_scalars,
	update_by_sgd };
static const OptimizerKind plain_sgd_kind = { { NULL }, "sgd scalars",
	sizeof(SgdStep), offsetof(SgdStep, unscale), set_sgd_scalars,
	update_by_sgd };

// make an optimizer and free it
Optimizer optimizer_new(Device *d, const OptimizerKind *kind,
	OptimizerSettings settings, const Span *spans, int nspans, bool fused)
{
	Optimizer o = { .kind = kind, .settings = settings, .device = d,
		.fused = fused };
	for (int i = 0; i < nspans; i++)
		o.n += spans[i].n;
	Type type = nspans ? spans[0].weight.type : TYPE_REAL;
	for (int i = 0; i < MOST_STATES && kind->states[i]; i++) {
		o.state[i] = array_new(d, o.n, type, MEM_OPTIMIZER, kind->states[i]);
		ops_for(d)->fill(d, o.state[i], 0, o.n);
	}
	o.scalars = device_alloc(d, kind->scalars_bytes, MEM_OPTIMIZER,
		kind->scalars_name);
	return o;
}

const char *optimizer_state_name(const Optimizer *o, int i)
{
	const char *what = i < MOST_STATES ? o->kind->states[i] : NULL;
	return what ? strrchr(what, ' ') + 1 : NULL;
}

void optimizer_free(Optimizer *o)
{
	for (int i = 0; i < MOST_STATES; i++)
		device_free(o->device, o->state[i].at);
	device_free(o->device, o->scalars);
	*o = (Optimizer){ 0 };
}

// make an optimizer for all parameters of a model
static Optimizer of_model(const Model *m, const OptimizerKind *kind,
	OptimizerSettings settings)
{
	Span *spans = need(malloc(shape_nparameters(&m->shape) * sizeof *spans));
	int n = model_spans(m, spans);
	Optimizer o = optimizer_new(m->device, kind, settings, spans, n, m->fused);
	o.parts = m->group ? m : NULL;
	free(spans);
	return o;
}

Optimizer adamw_new(const Model *m, double lr, double beta1, double beta2,
	double eps, double decay)
{
	return of_model(m, &adamw_kind, (OptimizerSettings){ .lr = lr,
		.beta1 = beta1, .beta2 = beta2, .eps = eps, .decay = decay });
}

Optimizer sgd_new(const Model *m, double lr, double momentum)
{
	return of_model(m, momentum == 0 ? &plain_sgd_kind : &sgd_kind,
		(OptimizerSettings){ .lr = lr, .momentum = momentum });
}

// update all spans
Gradients optimizer_gradients(const Optimizer *o, const Span *s)
{
	Gradients g = o->sums;
	if (g.n == 0)
		return one_gradient(s->gradient);
	ptrdiff_t skipped = (char *)s->gradient.at - (char *)o->gradients.at;
	size_t offset = skipped / o->device->backend->width(s->gradient.type);
	assert(skipped >= 0 && o->gradients.type == s->gradient.type);
	for (int k = 0; k < g.n; k++)
		g.at[k] = array_part(o->device, g.at[k], offset);
	return g;
}

void optimizer_begin(Optimizer *o, double unscale)
{
	_Alignas(16) char scalars[128];
	o->t++;
	if (o->kind == NULL)
		return;
	assert(o->kind->scalars_bytes <= sizeof scalars);
	o->kind->scalars(o, unscale, scalars);
	device_upload(o->device, o->scalars, scalars, o->kind->scalars_bytes);
}

// clip the norm of the gradients
static void clip_by(const Optimizer *o, Array squares)
{
	ops_for(o->device)->clip(o->device,
		(real *)((char *)o->scalars + o->kind->unscale), squares,
		o->settings.clip);
}

// add the squared gradients of a group
static void add_squares_of_group(const Optimizer *o, Array squares)
{
	const Model *m = o->parts;
	for (int i = 0; i < shape_nparameters(&m->shape); i++) {
		Span own = { .gradient = m->params[i].gradient,
			.n = m->params[i].about.count };
		if (!m->params[i].about.gain || m->group->rank == 0)
			m->ops->add_squares(m->device, squares, optimizer_gradients(o, &own),
				own.n);
	}
	group_collective(m->group, (GroupOp){ GROUP_REDUCE, squares, 1,
		"squared norm" });
}

// clip the norm of the gradients
void optimizer_clip(const Optimizer *o, const Span *spans, int nspans)
{
	const Ops *ops = ops_for(o->device);
	if (o->squares.at) {
		clip_by(o, o->squares);
		return;
	}
	Array squares = array_new(o->device, 1, TYPE_REAL, MEM_TEMPORARY,
		"squared norm");
	ops->fill(o->device, squares, 0, 1);
	if (o->parts)
		add_squares_of_group(o, squares);
	for (int i = 0; i < nspans && o->parts == NULL; i++)
		ops->add_squares(o->device, squares, optimizer_gradients(o, &spans[i]),
			spans[i].n);
	clip_by(o, squares);
	device_free(o->device, squares.at);
}

/* done: elements of the spans before it */
static void update_span(const Optimizer *o, const Span *s, size_t done,
	const int32_t *skip)
{
	Array state[MOST_STATES] = { { NULL, TYPE_REAL } };
	for (int k = 0; k < MOST_STATES && o->state[k].at; k++)
		state[k] = array_part(o->device, o->state[k], done);
	assert(done + s->n <= o->n && s->gradient.at);
	o->kind->update(o, s, optimizer_gradients(o, s), state, skip);
}

void optimizer_apply_one(const Optimizer *o, const Span *spans, int i,
	const int32_t *skip)
{
	size_t done = 0;
	for (int k = 0; k < i; k++)
		done += spans[k].n;
	update_span(o, &spans[i], done, skip);
}

// update each span with its part of the state
void optimizer_apply(const Optimizer *o, const Span *spans, int nspans,
	const int32_t *skip)
{
	size_t done = 0;
	if (o->kind == NULL)
		return;
	if (o->settings.clip > 0)
		optimizer_clip(o, spans, nspans);
	for (int i = 0; i < nspans; done += spans[i++].n)
		if (i >= o->early)
			update_span(o, &spans[i], done, skip);
	assert(done == o->n && "the spans are those that the optimizer was made for");
}
