#include "model/model.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/internal.h"

static double initial_sd(int i, const Parameter *p)
{
	return i == 0 ? 1 : sqrt(2.0 / (p->rows + p->columns));
}

static void draw_weights(Model *m, uint64_t seed)
{
	for (int i = 0; i < shape_nparameters(&m->shape); i++) {
		Parameter p = shape_parameter(&m->shape, i);
		if (p.gain)
			m->ops->fill(model_weight(m, i), 1, p.count);
		else
			m->ops->draw(model_weight(m, i), p.count, initial_sd(i, &p), 3,
				seed, i);
	}
}
static void tabulate_rope(Model *m)
{
	size_t half = m->shape.d_model / m->shape.heads / 2,
		n = m->shape.context * half;
	real *cosine = need(malloc(n * sizeof *cosine)),
		*sine = need(malloc(n * sizeof *sine));
	for (long t = 0; t < m->shape.context; t++)
		for (size_t i = 0; i < half; i++) {
			float frequency = powf((float)m->shape.theta,
				-((float)(2 * i) / (float)(2 * half)));
			cosine[t * half + i] = cosf((float)t * frequency);
			sine[t * half + i] = sinf((float)t * frequency);
		}
	Device *d = m->device;
	m->cosine = array_new(d, n, TYPE_REAL, MEM_PARAMETER, "rope cosine");
	m->sine = array_new(d, n, TYPE_REAL, MEM_PARAMETER, "rope sine");
	array_write(d, m->cosine, cosine, n);
	array_write(d, m->sine, sine, n);
	free(cosine);
	free(sine);
}
Model *model_new(Device *device, const Shape *shape, const Policy *policy,
	uint64_t seed)
{
	assert(shape_error(shape) == NULL);
	Model *m = need(calloc(1, sizeof *m));
	m->shape = *shape;
	m->policy = policy;
	m->device = device;
	m->ops = ops_for(device);
	m->count = shape_count(shape);
	m->activations = need(calloc(shape->layers, sizeof *m->activations));
	m->weights = array_new(device, m->count, policy->parameter, MEM_PARAMETER,
		"weights");
	m->loss = array_new(device, 1, TYPE_REAL, MEM_PARAMETER, "loss");
	m->nonfinite = device_alloc(device, sizeof *m->nonfinite, MEM_PARAMETER,
		"nonfinite");
	m->loss_scale = policy->op[OP_LINEAR].output == FP16 ? 65536 : 1;
	device_upload(device, m->nonfinite, &(int32_t){ 0 }, sizeof *m->nonfinite);
	tabulate_rope(m);
	draw_weights(m, seed);
	return m;
}

void model_free(Model **model)
{
	Model *m = *model;
	model_clear(m);
	if (m->compute_weights.at != m->weights.at)
		device_free(m->device, m->compute_weights.at);
	void *const all[] = { m->weights.at, m->gradients.at, m->cosine.at,
		m->sine.at, m->loss.at, m->nonfinite, m->tokens, m->targets };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		device_free(m->device, all[i]);
	free(m->activations);
	free(m);
	*model = NULL;
}
const char *const fusion_names[] = { "eager", "fused" };

void model_set_attention(Model *m, bool flash)
{
	assert(m->fused);
	m->flash = flash
		&& m->ops->fused.supports_attention(m->policy->op[OP_SCORES].input,
		m->shape.d_model / m->shape.heads);
}

void model_fuse(Model *m)
{
	Type type = m->policy->op[OP_LINEAR].input;
	assert(!m->layernorm);
	m->fused = true;
	model_set_attention(m, true);
	m->compute_weights = (Array){ m->weights.at, type };
	if (!m->ops->reads(m->weights.type, type))
		m->compute_weights = array_new(m->device, m->count, type, MEM_PARAMETER,
			"compute weights");
	model_weights_changed(m);
}

void model_recompute(Model *m, int K, bool nested)
{
	assert(K >= 0 && K <= m->shape.layers && (K > 0 || !nested));
	m->recompute_blocks = K;
	m->checkpoint_every = nested ? (int)m->shape.layers : K;
}

void model_weights_changed(Model *m)
{
	if (m->compute_weights.at && m->compute_weights.at != m->weights.at)
		m->ops->cast(m->compute_weights, m->weights, m->count);
}
Array model_weight(const Model *m, int i)
{
	return array_part(m->device, m->weights,
		shape_parameter(&m->shape, i).offset);
}

Array model_gradient(const Model *m, int i)
{
	assert(m->gradients.at);
	return array_part(m->device, m->gradients,
		shape_parameter(&m->shape, i).offset);
}
