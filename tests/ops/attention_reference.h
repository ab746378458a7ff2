/* attention_reference.h: attention, compared with its formulas */
#ifndef TESTS_OPS_ATTENTION_REFERENCE_H
#define TESTS_OPS_ATTENTION_REFERENCE_H

#include "tests/ops/attention_formulas.h"

// compute packed sequences, and each by itself
/* where sequences begin: one has no queries, one no keys */
enum { SEQUENCES = 4 };
static const int starts_q[] = { 0, 37, 37, 102, 230 },
	starts_k[] = { 0, 53, 70, 70, 171 };

/* all rows as one sequence; D, types, heads and masks are p's */
static inline Problem packed_rows(Problem p)
{
	p.B = 1, p.heads_first = false, p.seqlen_q = starts_q[SEQUENCES];
	p.seqlen_k = starts_k[SEQUENCES];
	return p;
}

/* q, k: starts, where the device has them */
static inline Attention packed_on(const Problem *p, const Array *at, Array L,
	const int *q, const int *k)
{
	Attention a = attention_on(p, at, L);
	a.B = SEQUENCES, a.starts_q = q, a.starts_k = k;
	a.total_q = p->seqlen_q, a.total_k = p->seqlen_k;
	a.seqlen_q = 128, a.seqlen_k = 101;
	return a;
}

/* sequence b alone, and its parts of arrays `at` of the device d; NULL: of the
 * host */
static inline Problem one_of_packed(const Device *d, const Problem *p, int b,
	const Array *at, Array *parts)
{
	Problem one = *p;
	one.seqlen_q = starts_q[b + 1] - starts_q[b];
	one.seqlen_k = starts_k[b + 1] - starts_k[b];
	for (int a = 0; a < ARRAYS; a++) {
		size_t first = heads_of(p, a).row * (of_keys(a) ? starts_k : starts_q)[b];
		parts[a] = d ? array_part(d, at[a], first) : array_at(at[a], first);
	}
	return one;
}

// compare all that attention wrote
static inline double largest_of(const double *x, size_t n)
{
	double largest = 0;
	for (size_t i = 0; i < n; i++)
		largest = isinf(x[i]) ? largest : fmax(largest, fabs(x[i]));
	return largest;
}

/* the least unit of dQ and dK */
static inline double cancelled(const Problem *p, const Reference *r)
{
	double largest = 0;
	for (size_t i = 0; p->lost > 0 && i < p->B * p->H * p->seqlen_q; i++)
		largest = fmax(largest, fabs(dot(r->at[O] + i * p->D, r->at[DO]
			+ i * p->D, p->D)));
	return 4 * largest / sqrt((double)p->D);
}

/* got[a], for a from O and below end, are on the host. Outside of its rows an
 * output must still be NaN */
static inline void expect_outputs(const char *label, const Problem *p,
	const Reference *r, const Array *got, int end, Array L, double bound,
	double score)
{
	size_t nL = p->B * p->H * p->seqlen_q;
	double largest = largest_of(r->L, nL),
		all = (bound + score * largest) * fmax(1, p->D / 128.0),
		far = p->lost > 0 && p->far > -1e30 ? fmax(1, fabs(p->far)) : 1,
		query = p->lost > 0 ? 16 : 1;
	Expected *want = expected(nL);
	for (size_t i = 0; i < nL; i++)
		want[i] = (Expected){ r->L[i], score * (1 + largest) };
	expect_close(label, L, want, nL);
	for (int a = O; a < end; a++) {
		char what[300];
		size_t n = rows_of(p, a), D = p->D,
			count = p->B * heads_in(p, a) * n * D;
		size_t length = length_of(p, a), unset = 0;
		double unit = fmax(fmax(1, largest_of(r->at[a], count)), a == DQ
			|| a == DK ? cancelled(p, r) : 0);
		Array packed = poisoned(count);
		want = expected(count);
		for (size_t i = 0; i < count; i++) {
			size_t at = place_of(p, a, i / D / n, i / D % n, i % D);
			reals(packed)[i] = reals(got[a])[at];
			want[i] = (Expected){ r->at[a][i], all * unit * (i % D ? 1
				: a == DQ ? far : a == DK ? query : 1) };
		}
		snprintf(what, sizeof what, "%s: %s", label, array_names[a]);
		expect_close(what, packed, want, count);
		// check that rows were written and gaps were not
		for (size_t i = 0; i < length; i++)
			unset += isnan(reals(got[a])[i]);
		if (unset != length - count)
			fail_msg("%s: a gap was written, or a row was not", what);
	}
}

// compare all that attention wrote
static inline void expect_attention(const char *label, const Problem *p,
	const Reference *r, const Array *got, Array L, double bound, double score)
{
	expect_outputs(label, p, r, got, ARRAYS, L, bound, score);
}

#endif
