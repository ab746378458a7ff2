#include "model/fp8.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "model/buffers.h"
#include "ops/fp8.h"

// make and free the state of layers in FP8
static void drop_matrix(Model *m, Fp8Matrix *x)
{
	array_drop(m, &x->codes);
	array_drop(m, &x->scale);
}

Fp8State *fp8_new(const Model *m)
{
	size_t n = shape_nparameters(&m->shape);
	if (!m->policy->fp8)
		return NULL;
	if (m->group)
		usage_error("precision %s: a model that is split over ranks has no FP8, "
			"expected fp32 or bf16", m->policy->name);
	if (m->ops->fp8_cast == NULL)
		usage_error("precision %s: the JIT has no operations in FP8, expected "
			"--fusion eager or fused", m->policy->name);
	Fp8State *s = need(calloc(1, sizeof *s));
	*s = (Fp8State){ .ranks = 1,
		.straight = need(calloc(n, sizeof *s->straight)),
		.turned = need(calloc(n, sizeof *s->turned)),
		.kept = need(calloc(n, sizeof *s->kept)),
		.rest = need(calloc(n, sizeof *s->rest)),
		.fresh = need(calloc(n, sizeof *s->fresh)),
		.updates = need(calloc(n, sizeof *s->updates)),
		.sites = n * FP8_SITES };
	return s;
}

static void drop_maxima(Model *m)
{
	Fp8State *s = m->fp8;
	device_free(m->device, s->maxima.at);
	device_free(m->device, s->history.at);
	if (!s->shared)
		device_free(m->device, s->seen.at);
	s->maxima.at = s->history.at = s->seen.at = NULL;
}

void fp8_clear(Model *m)
{
	for (int i = 0; m->fp8 && i < shape_nparameters(&m->shape); i++) {
		drop_matrix(m, &m->fp8->kept[i]);
		drop_matrix(m, &m->fp8->rest[i]);
	}
}

void fp8_free(Model *m)
{
	Fp8State *s = m->fp8;
	if (s == NULL)
		return;
	fp8_clear(m);
	for (int i = 0; i < shape_nparameters(&m->shape); i++) {
		drop_matrix(m, &s->straight[i]);
		drop_matrix(m, &s->turned[i]);
	}
	drop_maxima(m);
	free(s->straight);
	free(s->turned);
	free(s->kept);
	free(s->rest);
	free(s->fresh);
	free(s->updates);
	free(s);
	m->fp8 = NULL;
}

bool fp8_multiplies(const Model *m, ParamSpan W)
{
	int last = shape_nparameters(&m->shape) - 1;
	return m->fp8 && W.first > 0 && W.first < last - 1;
}

// keep a delayed maximum
static Array zeros(Model *m, size_t n, const char *what)
{
	Array a = array_new(m->device, n, TYPE_REAL, MEM_PARAMETER, what);
	m->ops->fill(m->device, a, 0, n);
	return a;
}

void fp8_set(Model *m, Fp8Settings settings)
{
	Fp8State *s = m->fp8;
	assert(s && (settings.gradient == E4M3 || settings.gradient == E5M2));
	assert(!s->ready && !s->shared && "before the first step, and a trainer");
	drop_maxima(m);
	s->settings = settings;
	if (settings.scaling != FP8_DELAYED)
		return;
	s->maxima = zeros(m, s->sites, "fp8 maxima");
	s->history = zeros(m, FP8_WINDOW * s->sites, "fp8 history");
	s->seen = zeros(m, s->sites, "fp8 maxima of a step");
}

bool fp8_delays(const Model *m)
{
	return m->fp8 && m->fp8->maxima.at;
}

void fp8_advance(Model *m)
{
	Fp8State *s = m->fp8;
	if (!fp8_delays(m))
		return;
	m->ops->fp8_advance(m->device, s->maxima, s->history, FP8_WINDOW, s->seen,
		s->ranks, s->sites);
	s->ready = true;
}

void fp8_share(Model *m, Array seen, int rank, int ranks)
{
	Fp8State *s = m->fp8;
	assert(fp8_delays(m));
	if (!s->shared)
		device_free(m->device, s->seen.at);
	s->shared = seen.at != NULL;
	s->seen = s->shared ? seen : zeros(m, s->sites, "fp8 maxima of a step");
	s->rank = rank;
	s->ranks = ranks;
}

void fp8_history_changed(Model *m)
{
	Fp8State *s = m->fp8;
	size_t n = FP8_WINDOW * s->sites;
	real *history = need(malloc(n * sizeof *history)),
		*maxima = need(calloc(s->sites, sizeof *maxima)), most = 0;
	array_read(m->device, history, s->history, n);
	for (size_t i = 0; i < n; i++) {
		real *to = &maxima[i % s->sites];
		*to = history[i] > *to ? history[i] : *to;
		most = *to > most ? *to : most;
	}
	array_write(m->device, s->maxima, maxima, s->sites);
	s->ready = most > 0;
	fp8_weights_changed(m);
	free(history);
	free(maxima);
}

// cast a matrix of a layer to FP8
static Fp8Matrix new_matrix(Model *m, size_t rows, size_t k, Type type,
	bool left, Category category)
{
	Fp8Scaling by = m->fp8->settings.scaling;
	Fp8Layout layout = by == FP8_ROW ? FP8_ROWS : by != FP8_BLOCK ? FP8_ONE
		: left ? FP8_VECTORS : FP8_BLOCKS;
	return (Fp8Matrix){ array_new(m->device, rows * k, type, category,
		"fp8 codes"), array_new(m->device, fp8_scales(layout, rows, k),
		TYPE_REAL, category, "fp8 scales"), layout, rows, k };
}

/* the maximum of a site in this step, of this rank */
static Array seen_at(const Model *m, int site)
{
	const Fp8State *s = m->fp8;
	return array_part(m->device, s->seen, s->rank * s->sites + site);
}

/* x (rows, columns) in one form or both */
static void cast(Model *m, Fp8Input x, size_t rows, size_t columns, int site,
	const Fp8Matrix *straight, const Fp8Matrix *turned)
{
	Fp8State *s = m->fp8;
	bool given = fp8_delays(m) && s->ready;
	Fp8Cast c = { .source = x.source, .ab = x.ab, .x = x.x, .rows = rows,
		.columns = columns, .scaling = s->settings.scaling, .given = given };
	if (straight)
		c.straight = *straight;
	if (turned)
		c.turned = *turned;
	c.maxima = given ? array_part(m->device, s->maxima, site) : temporary(m,
		fp8_groups(c.scaling, rows, columns), TYPE_REAL, "fp8 maxima");
	if (fp8_delays(m) && (m->has_activations || site % FP8_SITES == FP8_W))
		c.seen = seen_at(m, site);
	RANGE(m->device, "fp8 cast")
		m->ops->fp8_cast(m->device, c);
	if (!given)
		array_drop(m, &c.maxima);
}

static int site_of(ParamSpan W, int which)
{
	return W.first * FP8_SITES + which;
}

static void cast_weights(Model *m, Array w, ParamSpan W)
{
	Fp8Matrix *straight = &m->fp8->straight[W.first],
		*turned = &m->fp8->turned[W.first];
	const Parameter *p = &m->params[W.first].about;
	size_t rows = p->rows * W.count;
	if (m->fused && m->fp8->fresh[W.first]
		&& (turned->codes.at || !m->has_activations))
		return;
	if (straight->codes.at == NULL)
		*straight = new_matrix(m, rows, p->columns, E4M3, false,
			MEM_PARAMETER);
	if (turned->codes.at == NULL && m->has_activations)
		*turned = new_matrix(m, p->columns, rows, E4M3, false, MEM_PARAMETER);
	cast(m, (Fp8Input){ w }, rows, p->columns, site_of(W, FP8_W), straight,
		turned->codes.at ? turned : NULL);
	m->fp8->fresh[W.first] = true;
}

/* codes of weights w for a matmul: the model's, or, where none are kept, those
 * that drop_weights frees behind it */
static Fp8Matrix weight_codes(Model *m, Array w, ParamSpan W, bool turned)
{
	const Parameter *p = &m->params[W.first].about;
	size_t rows = p->rows * W.count, columns = p->columns;
	if (!m->plan.drop_weight_codes && !turned)
		cast_weights(m, w, W);
	if (!m->plan.drop_weight_codes)
		return (turned ? m->fp8->turned : m->fp8->straight)[W.first];
	Fp8Matrix codes = new_matrix(m, turned ? columns : rows, turned ? rows
		: columns, E4M3, false, MEM_TEMPORARY);
	cast(m, (Fp8Input){ w }, rows, columns, site_of(W, FP8_W),
		turned ? NULL : &codes, turned ? &codes : NULL);
	return codes;
}

static void drop_weights(Model *m, Fp8Matrix *codes)
{
	if (m->plan.drop_weight_codes)
		drop_matrix(m, codes);
}

/* dY straight (N, rows), or turned; the other form waits in rest */
static Fp8Matrix take_dy(Model *m, Fp8Input dy, ParamSpan W, size_t N,
	bool turned)
{
	Fp8Matrix *rest = &m->fp8->rest[W.first], taken = *rest;
	size_t rows = m->params[W.first].about.rows * W.count;
	Type type = m->fp8->settings.gradient;
	if (taken.codes.at) {
		assert(taken.rows == (turned ? rows : N));
		*rest = (Fp8Matrix){ .rows = 0 };
		return taken;
	}
	Fp8Matrix forms[] = { new_matrix(m, N, rows, type, true, MEM_TEMPORARY),
		new_matrix(m, rows, N, type, true, MEM_TEMPORARY) };
	cast(m, dy, N, rows, site_of(W, FP8_DY), &forms[0], &forms[1]);
	*rest = forms[!turned];
	return forms[turned];
}

// keep codes of weights fresh
static const ParamSpan fused_weights[] = { { P_Q, 3 }, { P_OUTPUT, 1 },
	{ P_W1, 2 }, { P_W2, 1 } };
enum { WEIGHTS_OF_BLOCK = 4 };

/* weight i of all */
static ParamSpan fused_weight(const Model *m, int i)
{
	ParamSpan W = fused_weights[i % WEIGHTS_OF_BLOCK];
	return (ParamSpan){ in_block(m, i / WEIGHTS_OF_BLOCK, P_LN1) + W.first
		- P_LN1, W.count };
}

static size_t weights_of(const Model *m)
{
	return m->fp8 && m->fused ? WEIGHTS_OF_BLOCK * m->shape.layers : 0;
}

bool fp8_divides(const Model *m, int i)
{
	int within = (i - 1) % NBLOCK;
	for (int k = 0; k < WEIGHTS_OF_BLOCK && m->fp8 && m->fused
		&& i > 0; k++)
		if (within == fused_weights[k].first || within == (fused_weights[k].first
			+ fused_weights[k].count) % NBLOCK)
			return true;
	return false;
}

// tell an update what to write
const Fp8Cast *fp8_update(const Model *m, int i)
{
	Fp8State *s = m->fp8;
	if (s == NULL || !m->fused || m->weights.at == NULL
		|| s->turned[i].codes.at == NULL)
		return NULL;
	const Fp8Matrix *w = &s->straight[i];
	bool delayed = s->settings.scaling == FP8_DELAYED && s->ready;
	if ((!delayed && s->settings.scaling != FP8_BLOCK) || w->rows % FP8_UNIT
		|| w->k % FP8_UNIT)
		return NULL;
	Fp8Cast *c = &s->updates[i];
	*c = (Fp8Cast){ .rows = w->rows, .columns = w->k, .scaling
		= s->settings.scaling, .straight = *w, .turned = s->turned[i],
		.given = delayed };
	int site = site_of((ParamSpan){ i, 1 }, FP8_W);
	if (delayed) {
		c->maxima = array_part(m->device, s->maxima, site);
		c->seen = seen_at(m, site);
	}
	return c;
}

void fp8_updated(Model *m)
{
	for (size_t i = 0; i < weights_of(m); i++) {
		int first = fused_weight(m, (int)i).first;
		m->fp8->fresh[first] = fp8_update(m, first) != NULL;
		m->fp8->updated |= m->fp8->fresh[first];
	}
}

// renew the codes of weights
static void renew_copy(Model *m, ParamSpan W)
{
	for (int i = W.first; i < W.first + W.count; i++) {
		const Param *p = &m->params[i];
		m->ops->cast(m->device, p->compute, p->weight, p->about.count);
	}
}

void fp8_weights_changed(Model *m)
{
	for (size_t i = 0; i < weights_of(m); i++) {
		ParamSpan W = fused_weight(m, (int)i);
		m->fp8->fresh[W.first] = false;
		if (m->fp8->updated) {
			renew_copy(m, W);
			cast_weights(m, m->params[W.first].compute, W);
		}
	}
}

void fp8_drop_weights(Model *m)
{
	for (size_t i = 0; i < weights_of(m); i++) {
		ParamSpan W = fused_weight(m, (int)i);
		if (m->fp8->updated)
			renew_copy(m, W);
		m->fp8->fresh[W.first] = false;
		drop_matrix(m, &m->fp8->straight[W.first]);
		drop_matrix(m, &m->fp8->turned[W.first]);
	}
	m->fp8->updated = false;
}

// multiply a layer in FP8
static void multiply(Model *m, Array C, Fp8Matrix A, Fp8Matrix B, double beta)
{
	RANGE(m->device, "linear")
		m->ops->fp8_matmul(m->device, C, A, B, beta);
}

void fp8_forward(Model *m, Array Y, Fp8Input x, Array w, ParamSpan W, size_t N)
{
	size_t columns = m->params[W.first].about.columns;
	Fp8Matrix X = new_matrix(m, N, columns, E4M3, true, MEM_TEMPORARY),
		*kept = &m->fp8->kept[W.first];
	bool keep = m->fp8->keeps && kept->codes.at == NULL;
	if (keep)
		*kept = new_matrix(m, columns, N, E4M3, false, MEM_ACTIVATION);
	cast(m, x, N, columns, site_of(W, FP8_X), &X, keep ? kept : NULL);
	Fp8Matrix codes = weight_codes(m, w, W, false);
	multiply(m, Y, X, codes, 0);
	drop_weights(m, &codes);
	drop_matrix(m, &X);
}

void fp8_keep(Model *m, bool keep)
{
	if (m->fp8)
		m->fp8->keeps = keep;
}

bool fp8_kept(const Model *m, ParamSpan W)
{
	return m->fp8 && m->fp8->kept[W.first].codes.at;
}

void fp8_backward_input(Model *m, Array dX, double beta, Fp8Input dy,
	ParamSpan W, size_t N)
{
	Fp8Matrix dY = take_dy(m, dy, W, N, false),
		codes = weight_codes(m, m->params[W.first].compute, W, true);
	multiply(m, dX, dY, codes, beta);
	drop_weights(m, &codes);
	drop_matrix(m, &dY);
}

void fp8_weight_gradient(Model *m, Array dW, Fp8Input dy, Fp8Input x,
	ParamSpan W, double beta, size_t N)
{
	size_t columns = m->params[W.first].about.columns;
	Fp8Matrix dY = take_dy(m, dy, W, N, true), X = m->fp8->kept[W.first];
	m->fp8->kept[W.first] = (Fp8Matrix){ .rows = 0 };
	if (X.codes.at == NULL) {
		X = new_matrix(m, columns, N, E4M3, false, MEM_TEMPORARY);
		cast(m, x, N, columns, site_of(W, FP8_X), NULL, &X);
	}
	multiply(m, dW, dY, X, beta);
	drop_matrix(m, &X);
	drop_matrix(m, &dY);
}
