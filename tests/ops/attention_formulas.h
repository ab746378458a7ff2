/* attention_formulas.h: attention and its gradients by their formulas */
#ifndef TESTS_OPS_ATTENTION_FORMULAS_H
#define TESTS_OPS_ATTENTION_FORMULAS_H

#include "tests/ops/attention_problem.h"

// find attention and its gradients by the formulas
typedef struct Reference {
	double *at[ARRAYS], *L;         /* (heads, rows, D), (B H, queries) */
} Reference;

static inline double *zeros(size_t n)
{
	double *x = guarded(n * sizeof *x);
	for (size_t i = 0; i < n; i++)
		x[i] = 0;
	return x;
}

static inline double dot(const double *x, const double *y, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += x[i] * y[i];
	return sum;
}

static inline void add(double *y, double a, const double *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		y[i] += a * x[i];
}

static inline void reference_row(const Problem *p, const Reference *r,
	size_t head, size_t i, double *p_row)
{
	size_t D = p->D, nk = p->seqlen_k, row = head * p->seqlen_q + i,
		shared = head / group_of(p), end = i + 1 + (p->bottom_right ? nk : 0),
		hidden = p->bottom_right ? p->seqlen_q : 0, seen = nk;
	if (p->causal && end < nk + hidden)
		seen = end > hidden ? end - hidden : 0;
	const double *k = r->at[K] + shared * nk * D,
		*v = r->at[V] + shared * nk * D;
	double largest = -INFINITY, sum = 0, mean = 0, scale = 1 / sqrt(D);
	for (size_t j = 0; j < seen; j++) {
		double score = dot(r->at[Q] + row * D, k + j * D, D);
		p_row[j] = isinf((real)score) ? -INFINITY : scale * score;
		largest = fmax(largest, p_row[j]);
	}
	if (largest == -INFINITY) {              /* O and gradients are zero */
		r->L[row] = -INFINITY;
		return;
	}
	for (size_t j = 0; j < seen; j++)
		sum += exp(p_row[j] - largest);
	r->L[row] = largest + log(sum);
	for (size_t j = 0; j < seen; j++) {
		p_row[j] = exp(p_row[j] - r->L[row]);
		add(r->at[O] + row * D, p_row[j], v + j * D, D);
		mean += p_row[j] * dot(r->at[DO] + row * D, v + j * D, D);
	}
	for (size_t j = 0; j < seen; j++) {
		double ds = scale * p_row[j]
			* (dot(r->at[DO] + row * D, v + j * D, D) - mean);
		size_t key = (shared * nk + j) * D;
		add(r->at[DV] + key, p_row[j], r->at[DO] + row * D, D);
		add(r->at[DK] + key, ds, r->at[Q] + row * D, D);
		add(r->at[DQ] + row * D, ds, k + j * D, D);
	}
}

static inline void rope_backward(const Problem *p, double *x, size_t heads,
	size_t rows)
{
	for (size_t i = 0; i < heads * rows * p->D && p->rotated; i += 2) {
		double a = angle(i / 2 % (rows * (p->D / 2))), even = x[i];
		x[i] = cos(a) * even + sin(a) * x[i + 1];
		x[i + 1] = cos(a) * x[i + 1] - sin(a) * even;
	}
}

/* draws the inputs, rounded to `type`, into at[], and returns the reference;
 * arrays that are no inputs stay poisoned */
static inline Reference reference_of(const Problem *p, Type type, Array *at)
{
	Reference r = { .L = zeros(p->B * p->H * p->seqlen_q) };
	for (int a = 0; a < ARRAYS; a++) {
		size_t n = rows_of(p, a), D = p->D, count = p->B * heads_in(p, a) * n * D;
		r.at[a] = zeros(count);
		at[a] = poisoned(length_of(p, a));
		at[a].type = type;
		for (size_t i = 0; i < count && a < INPUTS; i++) {
			double x = (a == Q ? p->size : 1) * random_truncated(1, a, i, 3);
			if (p->lost > 0 && a <= K && i % D == 0)
				x = a == Q ? 16 : i / D % n < p->lost ? p->far : 0;
			x = (real)x;
			if (type != TYPE_REAL && type != TF32)
				x = round_to(type, (float)x);
			r.at[a][i] = x;
			reals(at[a])[place_of(p, a, i / D / n, i / D % n, i % D)] = (real)x;
		}
	}
	double *p_row = zeros(p->seqlen_k);
	for (size_t head = 0; head < p->B * p->H; head++)
		for (size_t i = 0; i < p->seqlen_q; i++)
			reference_row(p, &r, head, i, p_row);
	rope_backward(p, r.at[DQ], p->B * p->H, p->seqlen_q);
	rope_backward(p, r.at[DK], p->B * heads_in(p, DK), p->seqlen_k);
	return r;
}

#endif
