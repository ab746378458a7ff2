#include "model/model.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/random.h"
#include "model/internal.h"

static double initial_sd(int i, const Parameter *p)
{
	return i == 0 ? 1 : sqrt(2.0 / (p->rows + p->columns));
}

static void draw_weights(Model *m, uint64_t seed)
{
	real *host = need(malloc(m->count * sizeof *host));
	for (int i = 0; i < shape_nparameters(&m->shape); i++) {
		Parameter p = shape_parameter(&m->shape, i);
		double sd = initial_sd(i, &p);
		#pragma omp parallel for schedule(static)
		for (size_t j = 0; j < p.count; j++)
			host[p.offset + j] = p.gain ? 1
				: (real)(sd * random_truncated(seed, i, j, 3));
	}
	device_upload(m->device, m->weights.at, host, m->count * sizeof *host);
	free(host);
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
	m->cosine = array_new(m, n, TYPE_REAL, MEM_PARAMETER, "rope cosine");
	m->sine = array_new(m, n, TYPE_REAL, MEM_PARAMETER, "rope sine");
	device_upload(m->device, m->cosine.at, cosine, n * sizeof *cosine);
	device_upload(m->device, m->sine.at, sine, n * sizeof *sine);
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
	m->saved = need(calloc(shape->layers, sizeof *m->saved));
	m->weights = array_new(m, m->count, policy->parameter, MEM_PARAMETER,
		"weights");
	tabulate_rope(m);
	draw_weights(m, seed);
	return m;
}

void model_free(Model **model)
{
	Model *m = *model;
	model_clear(m);
	device_free(m->device, m->weights.at);
	device_free(m->device, m->gradients.at);
	device_free(m->device, m->cosine.at);
	device_free(m->device, m->sine.at);
	free(m->saved);
	free(m);
	*model = NULL;
}
Array model_weight(const Model *m, int i)
{
	return array_at(m->weights, shape_parameter(&m->shape, i).offset);
}

Array model_gradient(const Model *m, int i)
{
	assert(m->gradients.at);
	return array_at(m->gradients, shape_parameter(&m->shape, i).offset);
}
