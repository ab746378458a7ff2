#include "model/model.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "model/buffers.h"
#include "model/fp8.h"
#include "model/linear.h"
#include "model/path.h"
#include "model/rank_rows.h"
#include "model/span.h"

// draw the initial weights
static double initial_sd(int i, const Parameter *p)
{
	return i == 0 ? 1 : sqrt(2.0 / (p->rows + p->columns));
}

void model_draw(const Model *m, Array to, int i, size_t first, size_t n)
{
	Parameter all = shape_parameter(&m->whole, i);
	ParameterSlice s = group_slice(&m->whole, m->group, i);
	if (all.gain)
		m->ops->fill(m->device, to, 1, n);
	// draw elements of a slice
	for (size_t done = 0, run; done < n && !all.gain; done += run) {
		size_t row = (first + done) / s.columns, column = (first + done) % s.columns;
		run = n - done;
		if (s.columns < s.whole_columns && s.columns - column < run)
			run = s.columns - column;
		m->ops->draw(m->device, array_part(m->device, to, done), run,
			initial_sd(i, &all), 3, m->seed, i,
			(s.row + row) * s.whole_columns + s.column + column);
	}
}

// tabulate the rotary embedding
/* an angle's function in a table (context, half) */
typedef struct AngleTable {
	size_t half;
	double theta;
	float (*function)(float angle);
} AngleTable;

static void tabulate_angles(const void *arg, real *to, size_t n)
{
	const AngleTable *a = arg;
	for (size_t i = 0; i < a->half; i++) {
		float frequency = powf((float)a->theta,
			-((float)(2 * i) / (float)(2 * a->half)));
		for (size_t t = 0; t < n / a->half; t++)
			to[t * a->half + i] = a->function((float)t * frequency);
	}
}

static void tabulate_rope(Model *m)
{
	size_t half = m->shape.d_head / 2, n = m->shape.context * half;
	Device *d = m->device;
	m->cosine = array_new(d, n, TYPE_REAL, MEM_PARAMETER, "rope cosine");
	m->sine = array_new(d, n, TYPE_REAL, MEM_PARAMETER, "rope sine");
	array_tabulate(d, m->cosine, n, tabulate_angles,
		&(AngleTable){ half, m->shape.theta, cosf });
	array_tabulate(d, m->sine, n, tabulate_angles,
		&(AngleTable){ half, m->shape.theta, sinf });
}

// point parameters at the model's buffers
static Array new_buffer(Model *m, Type type, Category category,
	const char *what)
{
	Array a = array_new(m->device, m->extent, type, category, what);
	if (m->extent > m->count)
		m->ops->fill(m->device, a, 0, m->extent);
	return a;
}

static Array view(const Model *m, Array buffer, size_t offset)
{
	if (buffer.at)
		buffer = array_part(m->device, buffer, offset);
	return buffer;
}

void model_view_params(Model *m)
{
	for (int i = 0; i < shape_nparameters(&m->shape); i++) {
		Parameter p = shape_parameter(&m->shape, i);
		m->params[i] = (Param){ .about = p,
			.weight = view(m, m->weights, p.offset),
			.compute = view(m, m->compute_weights, p.offset),
			.gradient = view(m, m->gradients, p.offset) };
	}
}

// give gradients their memory
void model_set_gradients(Model *m, Array gradients)
{
	assert(gradients.at == NULL || m->gradients.at == NULL);
	m->gradients = gradients;
	for (int i = 0; i < shape_nparameters(&m->shape); i++)
		m->params[i].gradient = view(m, gradients, m->params[i].about.offset);
}

void model_set_gradient_type(Model *m, Type type)
{
	assert(m->gradients.at == NULL && "before the first backward pass");
	model_set_gradients(m, (Array){ NULL, type });
}

// list the spans of a model
static bool is_adjacent(const Device *d, Array end, size_t n, Array next)
{
	return next.at == (end.at ? array_part(d, end, n).at : NULL);
}

static bool may_join(const Model *m, int i)
{
	bool begins_unit = i == 0 || (i - 1) % NBLOCK == 0;
	return m->fused || (m->compute_weights.at && !begins_unit);
}

int model_spans(const Model *m, Span *spans)
{
	const Device *d = m->device;
	int n = 0;
	for (int i = 0; i < shape_nparameters(&m->shape); i++) {
		const Param *p = &m->params[i];
		Array compute = p->compute;
		if (compute.at == p->weight.at)
			compute.at = NULL;
		Span *last = n ? &spans[n - 1] : NULL;
		if (may_join(m, i) && last && !fp8_divides(m, i)
			&& is_adjacent(d, last->weight, last->n, p->weight)
			&& is_adjacent(d, last->compute, last->n, compute)
			&& is_adjacent(d, last->gradient, last->n, p->gradient))
			last->n += p->about.count;
		else
			spans[n++] = (Span){ p->weight, compute, p->gradient,
				p->about.count, fp8_update(m, i) };
	}
	return n;
}

// build and free a model
static Model *new_bare(Device *device, const Shape *whole, const Policy *policy,
	uint64_t seed, const RankGroup *group)
{
	assert(shape_error(whole) == NULL);
	Model *m = need(calloc(1, sizeof *m));
	m->whole = *whole;
	m->group = group;
	m->shape = group_shape(whole, group);
	const Shape *shape = &m->shape;
	m->seed = seed;
	m->policy = policy;
	m->device = device;
	m->ops = ops_for(device);
	m->count = shape_count(shape);
	m->extent = shape_extent(shape);
	m->activations = need(calloc(shape->layers, sizeof *m->activations));
	m->params = need(calloc(shape_nparameters(shape), sizeof *m->params));
	m->weights.type = policy->parameter;
	m->gradients.type = policy->gradient;
	model_view_params(m);
	m->loss = array_new(device, 1, TYPE_REAL, MEM_PARAMETER, "loss");
	m->nonfinite = device_alloc(device, sizeof *m->nonfinite, MEM_PARAMETER,
		"nonfinite");
	m->loss_scale = policy->op[OP_LINEAR].output == FP16 ? 65536 : 1;
	m->share = 1;
	device_upload(device, m->nonfinite, &(int32_t){ 0 }, sizeof *m->nonfinite);
	m->fp8 = fp8_new(m);
	if (m->fp8)
		fp8_set(m, (Fp8Settings){ FP8_DELAYED, E5M2 });
	tabulate_rope(m);
	return m;
}

// make a model with its weights
Model *model_new_bare(Device *device, const Shape *shape, const Policy *policy,
	uint64_t seed)
{
	return new_bare(device, shape, policy, seed, NULL);
}

Model *model_new_part(Device *device, const Shape *whole, const Policy *policy,
	uint64_t seed, const RankGroup *group)
{
	Model *m = new_bare(device, whole, policy, seed, group);
	m->weights = new_buffer(m, policy->parameter, MEM_PARAMETER, "weights");
	model_view_params(m);
	for (int i = 0; i < shape_nparameters(whole); i++)
		model_draw(m, m->params[i].weight, i, 0, m->params[i].about.count);
	return m;
}

Model *model_new(Device *device, const Shape *shape, const Policy *policy,
	uint64_t seed)
{
	return model_new_part(device, shape, policy, seed, NULL);
}

// free a model
void model_free(Model **model)
{
	Model *m = *model;
	model_clear(m);
	fp8_free(m);
	if (m->compute_weights.at != m->weights.at)
		device_free(m->device, m->compute_weights.at);
	void *const all[] = { m->weights.at, m->gradients.at, m->cosine.at,
		m->sine.at, m->loss.at, m->nonfinite, m->tokens, m->targets };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		device_free(m->device, all[i]);
	free(m->activations);
	free(m->params);
	free(m);
	*model = NULL;
}

// choose how a model runs
const char *const fusion_names[NFUSIONS] = { CHOICE_NAMES(ALL_FUSIONS_OF) };

void model_set_attention(Model *m, bool flash)
{
	assert(m->fused);
	m->flash = flash
		&& m->ops->supports_attention(m->device, m->policy->op[OP_SCORES].input,
		m->shape.d_head);
}

void model_keep_compute(Model *m)
{
	Type type = m->policy->op[OP_LINEAR].input;
	m->compute_weights = (Array){ m->weights.at, type };
	if (m->weights.at && !m->ops->reads(m->device, m->weights.type, type))
		m->compute_weights = new_buffer(m, type, MEM_PARAMETER,
			"compute weights");
	model_view_params(m);
	model_weights_changed(m);
}

void model_fuse(Model *m)
{
	assert(!m->layernorm);
	m->fused = true;
	model_set_attention(m, true);
	model_keep_compute(m);
}

// choose what is run again
void model_recompute(Model *m, int K, bool nested)
{
	assert(K >= 0 && K <= m->shape.layers && (K > 0 || !nested));
	m->recompute_blocks = K;
	m->checkpoint_every = nested ? (int)m->shape.layers : K;
}

void model_follow(Model *m, const ModelPlan *plan)
{
	assert(m->checkpoint_every == 0
		|| (plan->drop_gate_up == 0 && plan->drop_qkv == 0));
	assert(m->fused || (plan->drop_gate_up == 0 && plan->drop_qkv == 0));
	assert((plan->drop_codes == 0 && !plan->drop_weight_codes)
		|| (m->fused && m->fp8));
	m->plan = *plan;
	if (plan->drop_weight_codes)
		fp8_drop_weights(m);
}

void model_weights_changed(Model *m)
{
	for (int i = 0; i < shape_nparameters(&m->shape); i++) {
		Param *p = &m->params[i];
		if (p->compute.at && p->compute.at != p->weight.at)
			m->ops->cast(m->device, p->compute, p->weight, p->about.count);
	}
	fp8_weights_changed(m);
}

// drop what a pass left
void model_clear(Model *m)
{
	for (int layer = 0; layer < m->shape.layers; layer++) {
		Activations *s = &m->activations[layer];
		Array *const all[] = { &s->x, &s->norm1, &s->rho1, &s->mu1, &s->q,
			&s->k, &s->v, &s->qkv, &s->P, &s->P_cast, &s->L, &s->o,
			&s->x_mid, &s->norm2, &s->rho2, &s->mu2, &s->gate, &s->up, &s->h,
			&s->gate_up };
		for (size_t i = 0; i < sizeof all / sizeof *all; i++)
			array_drop(m, all[i]);
	}
	Array *const ends[] = { &m->x, &m->norm, &m->rho, &m->mu, &m->logits,
		&m->losses, &m->lse, &m->dnorm, &m->dhead };
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		array_drop(m, ends[i]);
	linear_drop_casts(m, 0, shape_nparameters(&m->shape));
	fp8_clear(m);
	m->has_activations = false;
}

// translate tokens to rows of the rank's tables
static void upload_tokens(Model *m, int32_t *to, const int32_t *tokens)
{
	size_t n = m->B * m->T, nbytes = n * sizeof *tokens;
	if (m->group == NULL) {
		device_upload(m->device, to, tokens, nbytes);
		return;
	}
	int32_t first = (int32_t)group_begin(m->whole.vocab, m->group->rank,
		m->group->ranks), *own = need(malloc(nbytes));
	for (size_t i = 0; i < n; i++) {
		int32_t row = tokens[i] - first;
		own[i] = row >= 0 && row < m->shape.vocab ? row : -1;
	}
	device_upload(m->device, to, own, nbytes);
	free(own);
}

void model_load(Model *m, const int32_t *tokens, const int32_t *targets,
	size_t B, size_t T)
{
	assert(T >= 1 && T <= (size_t)m->shape.context && B >= 1);
	Device *d = m->device;
	size_t nbytes = B * T * sizeof *tokens;
	if (B * T != m->B * m->T) {
		device_free(d, m->tokens);
		device_free(d, m->targets);
		m->tokens = device_alloc(d, nbytes, MEM_ACTIVATION, "tokens");
		m->targets = device_alloc(d, nbytes, MEM_ACTIVATION, "targets");
	}
	m->B = B, m->T = T, m->has_targets = targets != NULL;
	if (m->group && B * T % m->group->ranks != 0)
		die("a batch of %zu sequences of %zu tokens does not split evenly over "
			"%d ranks", B, T, m->group->ranks);
	upload_tokens(m, m->tokens, tokens);
	if (targets)
		upload_tokens(m, m->targets, targets);
}

// run the path that was chosen
static const Path *path_of(const Model *m)
{
	return m->fused ? &fused_path : &eager_path;
}

void model_run(Model *m, bool keep)
{
	size_t N = m->B * m->T;
	assert(N > 0 && "a batch is loaded first");
	model_clear(m);
	assert(m->fused || m->group == NULL);
	m->has_activations = keep;
	path_of(m)->forward(m, keep);
	if (m->has_targets)
		RANGE(m->device, "loss")
			m->ops->mean(m->device, m->loss, m->nonfinite, m->losses, N);
}

void model_backward(Model *m, bool accumulate)
{
	assert(m->has_activations && m->has_targets
		&& "a forward pass with targets and keep comes first");
	bool first = m->params[0].gradient.at == NULL;
	if (first)
		model_set_gradients(m, new_buffer(m, m->gradients.type, MEM_GRADIENT,
			"gradients"));
	m->device->spare_sms = m->hooks.spare_sms;
	path_of(m)->backward(m, accumulate && !first ? 1 : 0);
	m->device->spare_sms = 0;
	model_clear(m);
}

// find the first tensor that is not finite
static void refuse_nonfinite(Model *m, Array a, size_t n, const char *where,
	const char *what)
{
	int32_t bad = 0;
	if (a.at == NULL)
		return;
	device_upload(m->device, m->nonfinite, &bad, sizeof bad);
	m->ops->count_nonfinite(m->device, m->nonfinite, a, n);
	device_download(m->device, &bad, m->nonfinite, sizeof bad);
	if (bad > 0)
		die("the loss is not finite; the first such tensor is %s%s (%d of "
			"%zu elements)", where, what, (int)bad, n);
}

// look through weights and activations in their order
static _Noreturn void name_first_nonfinite(Model *m, size_t N)
{
	size_t C = m->shape.d_model, F = m->shape.d_ff,
		A = m->shape.heads * m->shape.d_head, own = own_tokens(m),
		scores = N * m->T * m->shape.heads;
	for (int i = 0; i < shape_nparameters(&m->shape); i++) {
		const Parameter *p = &m->params[i].about;
		refuse_nonfinite(m, model_weight(m, i), p->count, "", p->name);
	}
	for (int layer = 0; layer < m->shape.layers; layer++) {
		const Activations *s = &m->activations[layer];
		// list a block's tensors in the order in which they are computed
		const struct { Array a; size_t n; const char *what; } order[] = {
			{ s->x, own * C, "input" }, { s->norm1, N * C, "ln1" },
			{ s->q, N * A, "attn.q" }, { s->k, N * A, "attn.k" },
			{ s->v, N * A, "attn.v" }, { s->qkv, 3 * N * A, "attn.qkv" },
			{ s->P, scores, "attn.softmax" },
			{ s->L, N * m->shape.heads, "attn.logsumexp" },
			{ s->o, N * A, "attn.values" },
			{ s->x_mid, own * C, "attn.residual" }, { s->norm2, N * C, "ln2" },
			{ s->gate, N * F, "ffn.w1" }, { s->up, N * F, "ffn.w3" },
			{ s->gate_up, 2 * N * F, "ffn.w1 and w3" },
			{ s->h, N * F, "ffn.swiglu" },
		};
		char where[32];
		snprintf(where, sizeof where, "layers.%d.", layer);
		for (size_t i = 0; i < sizeof order / sizeof *order; i++)
			refuse_nonfinite(m, order[i].a, order[i].n, where, order[i].what);
	}
	refuse_nonfinite(m, m->x, own * C, "", "the residual stream");
	refuse_nonfinite(m, m->norm, N * C, "", "ln_final");
	refuse_nonfinite(m, m->logits, N * m->shape.vocab, "", "logits");
	die("the loss is not finite, though every tensor%s is", m->logits.at ? ""
		: " before the logits");
}

// wait for the loss, stop if it is not finite
double model_loss(Model *m)
{
	real loss;
	array_read(m->device, &loss, m->loss, 1);
	if (!isfinite(loss)) {
		if (m->weights.at == NULL)
			die("the loss is not finite");
		if (m->logits.at == NULL)
			model_run(m, true);
		name_first_nonfinite(m, m->B * m->T);
	}
	return loss;
}

double model_forward(Model *m, const int32_t *tokens, const int32_t *targets,
	size_t B, size_t T, bool keep)
{
	model_load(m, tokens, targets, B, T);
	model_run(m, keep);
	return targets ? model_loss(m) : 0;
}
