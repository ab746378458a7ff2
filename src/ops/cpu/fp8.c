#include "ops/fp8.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ops/cpu/cpu.h"

// find the maxima of a cast
static void raise(real *to, float x)
{
	float a = fp8_magnitude(x);
	if (a > *to)
		*to = a;
}

static void find_maxima(const Fp8Cast *c)
{
	const real *x = c->x.at;
	real *maxima = c->maxima.at;
	memset(maxima, 0, fp8_groups(c->scaling, c->rows, c->columns)
		* sizeof *maxima);
	for (size_t i = 0; i < c->rows; i++)
		for (size_t j = 0; j < c->columns; j++) {
			float value = (float)x[i * c->columns + j];
			raise(&maxima[fp8_group_at(c, i, j, false)], value);
			if (c->scaling == FP8_ROW)
				raise(&maxima[fp8_group_at(c, i, j, true)], value);
		}
}

static void note_maximum(const Fp8Cast *c)
{
	for (size_t i = 0; i < c->rows * c->columns; i++)
		raise(c->seen.at, (float)((const real *)c->x.at)[i]);
}

// write one copy of a cast
static void write_scales(const Fp8Cast *c, const Fp8Matrix *to, bool turned)
{
	const real *maxima = c->maxima.at;
	real *scale = to->scale.at;
	memset(scale, 0, fp8_scales(to->layout, to->rows, to->k) * sizeof *scale);
	for (size_t row = 0; row < to->rows; row++)
		for (size_t k = 0; k < to->k; k += FP8_TILE)
			scale[fp8_scale_at(to, row, k)] = fp8_scale(to->codes.type,
				(float)maxima[fp8_group_at(c, turned ? k : row,
					turned ? row : k, turned)]);
}

static void write_copy(const Fp8Cast *c, const Fp8Matrix *to, bool turned)
{
	const real *x = c->x.at, *scale = to->scale.at;
	real *codes = to->codes.at;
	write_scales(c, to, turned);
	#pragma omp parallel for schedule(static)
	for (size_t row = 0; row < to->rows; row++)
		for (size_t k = 0; k < to->k; k++) {
			real value = turned ? x[k * c->columns + row]
				: x[row * c->columns + k];
			codes[row * to->k + k] = isfinite(value)
				? value / scale[fp8_scale_at(to, row, k)] : (real)NAN;
		}
	round_array(to->codes.type, codes, to->rows * to->k);
}

// compute what is cast
/* sets x to it; the caller frees the result */
static void *compute_source(Fp8Cast *c)
{
	size_t n = c->rows * c->columns;
	Array y = { need(malloc(n * sizeof(real))), c->ab.type };
	if (c->source == FP8_SWIGLU) {
		cpu_fused_swiglu_forward(NULL, y, c->ab, c->rows, c->columns);
	} else {
		Array h = { need(malloc(n / 2 * sizeof(real))), c->ab.type };
		cpu_fused_swiglu_backward(NULL, y, h, c->x, c->ab, c->rows,
			c->columns / 2);
		free(h.at);
	}
	c->x = y;
	return y.at;
}

void cpu_fp8_cast(Device *d, Fp8Cast c)
{
	void *computed = c.source == FP8_PLAIN ? NULL : compute_source(&c);
	if (!c.given)
		find_maxima(&c);
	if (c.seen.at)
		note_maximum(&c);
	if (c.straight.codes.at)
		write_copy(&c, &c.straight, false);
	if (c.turned.codes.at)
		write_copy(&c, &c.turned, true);
	free(computed);
}

// update weights and cast them
void cpu_fp8_adamw(Device *d, Array w, Gradients g, Array m, Array v,
	const AdamWStep *step, const int32_t *skip, Fp8Cast c)
{
	size_t n = c.rows * c.columns, groups = fp8_groups(c.scaling, c.rows,
		c.columns);
	if (skip && *skip)
		return;
	c.source = FP8_PLAIN;
	c.x = (Array){ need(malloc(n * sizeof(real))), BF16 };
	cpu_fused_adamw(d, w, c.x, g, m, v, n, step, NULL);
	void *found = c.given ? NULL : need(malloc(groups * sizeof(real)));
	if (found)
		c.maxima = (Array){ found, TYPE_REAL };
	cpu_fp8_cast(d, c);
	free(found);
	free(c.x.at);
}

// multiply matrices in FP8
static Array dequantized(const Fp8Matrix *m)
{
	const real *codes = m->codes.at, *scale = m->scale.at;
	real *x = need(malloc(m->rows * m->k * sizeof *x));
	#pragma omp parallel for schedule(static)
	for (size_t row = 0; row < m->rows; row++)
		for (size_t k = 0; k < m->k; k++)
			x[row * m->k + k] = codes[row * m->k + k]
				* scale[fp8_scale_at(m, row, k)];
	return (Array){ x, TYPE_REAL };
}

void cpu_fp8_matmul(Device *d, Array C, Fp8Matrix A, Fp8Matrix B, double beta)
{
	Array a = dequantized(&A), b = dequantized(&B);
	cpu_matmul(d, C, a, b, (Matmul){ .m = A.rows, .n = B.rows, .k = A.k,
		.trans_b = true, .lda = A.k, .ldb = B.k, .ldc = B.rows, .alpha = 1,
		.beta = beta });
	free(a.at);
	free(b.at);
}

// move a history on
void cpu_fp8_advance(Device *d, Array maxima, Array history, int window,
	Array seen, int ranks, size_t sites)
{
	real *h = history.at, *s = seen.at, *m = maxima.at;
	memmove(h + sites, h, (size_t)(window - 1) * sites * sizeof *h);
	for (size_t i = 0; i < sites; i++) {
		m[i] = h[i] = 0;
		for (int r = 0; r < ranks; r++)
			raise(&h[i], (float)s[(size_t)r * sites + i]);
		for (int w = 0; w < window; w++)
			raise(&m[i], (float)h[(size_t)w * sites + i]);
	}
	memset(s, 0, (size_t)ranks * sites * sizeof *s);
}
