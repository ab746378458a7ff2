/* attention_reference.h: attention by its formulas, and arrays with gaps to
 * compare with */
#ifndef TESTS_OPS_ATTENTION_REFERENCE_H
#define TESTS_OPS_ATTENTION_REFERENCE_H

#include "tests/ops/compare.h"

// describe a problem of attention
typedef struct Problem {
	size_t B, H, seqlen_q, seqlen_k, D;
	bool causal;
	double size;                    /* standard deviation of the queries */
	size_t gap;                     /* elements between rows */
	bool heads_first;               /* (B, H, rows, D), not (B, rows, H, D) */
	bool rotated;                    /* are gradients rotated back? D is even */
	size_t group;                   /* heads that share one of K, V; 0: 1 */
	bool bottom_right;              /* is the mask aligned at the end? */
	/* the first keys of each head whose scores are far below the others': their
	 * first element is `far`, all other keys' is 0, and all queries' is 16 */
	size_t lost;
	double far;
} Problem;

#define ARRAYS_OF(FIRST, NEXT) \
	FIRST(Q, "Q") NEXT(K, "K") NEXT(V, "V") NEXT(DO, "dO") NEXT(O, "O") \
	NEXT(DQ, "dQ") NEXT(DK, "dK") NEXT(DV, "dV")
enum { CHOICE_IDS(ARRAYS_OF) ARRAYS, INPUTS = O };
static const char *const array_names[ARRAYS] = { CHOICE_NAMES(ARRAYS_OF) };

static inline bool of_keys(int which)
{
	return which == K || which == V || which == DK || which == DV;
}

static inline size_t rows_of(const Problem *p, int which)
{
	return of_keys(which) ? p->seqlen_k : p->seqlen_q;
}

static inline size_t group_of(const Problem *p)
{
	return p->group ? p->group : 1;
}

static inline size_t heads_in(const Problem *p, int which)
{
	return of_keys(which) ? p->H / group_of(p) : p->H;
}

/* x.at is still to be set */
static inline Heads heads_of(const Problem *p, int which)
{
	size_t n = rows_of(p, which), H = heads_in(p, which);
	if (p->heads_first)
		return (Heads){ .row = p->D + p->gap, .head = n * (p->D + p->gap),
			.batch = H * n * (p->D + p->gap) };
	size_t row = H * p->D + p->gap;
	return (Heads){ .row = row, .head = p->D, .batch = n * row };
}

static inline size_t length_of(const Problem *p, int which)
{
	return p->B * heads_of(p, which).batch;
}

static inline size_t place_of(const Problem *p, int which, size_t head,
	size_t row, size_t d)
{
	Heads x = heads_of(p, which);
	size_t H = heads_in(p, which);
	return head / H * x.batch + head % H * x.head + row * x.row + d;
}

static inline Attention attention_on(const Problem *p, const Array *at, Array L)
{
	Heads x[ARRAYS];
	for (int i = 0; i < ARRAYS; i++)
		x[i] = heads_of(p, i), x[i].x = at[i];
	return (Attention){ .B = p->B, .H = p->H, .seqlen_q = p->seqlen_q,
		.seqlen_k = p->seqlen_k, .D = p->D, .group = group_of(p),
		.scale = 1 / sqrt(p->D), .causal = p->causal,
		.bottom_right = p->bottom_right, .q = x[Q], .k = x[K], .v = x[V],
		.o = x[O], .L = L };
}

static inline AttentionGradient gradient_on(const Problem *p, const Array *at,
	const Array angles[2])
{
	Heads x[ARRAYS];
	for (int i = 0; i < ARRAYS; i++)
		x[i] = heads_of(p, i), x[i].x = at[i];
	AttentionGradient g = { .d_o = x[DO], .dq = x[DQ], .dk = x[DK],
		.dv = x[DV], .deterministic = true };
	if (p->rotated)
		g.cosine = angles[0], g.sine = angles[1];
	return g;
}

static inline size_t angles_of(const Problem *p)
{
	return (p->seqlen_q > p->seqlen_k ? p->seqlen_q : p->seqlen_k) * (p->D / 2);
}

static inline double angle(size_t i)
{
	return 0.37 * i;
}

/* cosines and sines of all angles */
static inline void fill_angles(const Problem *p, Array angles[2])
{
	for (int part = 0; part < 2; part++) {
		angles[part] = poisoned(angles_of(p));
		for (size_t i = 0; i < angles_of(p); i++)
			reals(angles[part])[i] = (real)(part ? sin(angle(i))
				: cos(angle(i)));
	}
}

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

/* got[a], for a from O and below end, are on the host. Outside of its rows an
 * output must still be NaN */
static inline void expect_outputs(const char *label, const Problem *p,
	const Reference *r, const Array *got, int end, Array L, double bound,
	double score)
{
	size_t nL = p->B * p->H * p->seqlen_q;
	double largest = largest_of(r->L, nL),
		all = (bound + score * largest) * fmax(1, p->D / 128.0),
		far = p->lost > 0 && p->far > -1e30 ? fmax(1, fabs(p->far)) : 1;
	Expected *want = expected(nL);
	for (size_t i = 0; i < nL; i++)
		want[i] = (Expected){ r->L[i], score * (1 + largest) };
	expect_close(label, L, want, nL);
	for (int a = O; a < end; a++) {
		char what[300];
		size_t n = rows_of(p, a), D = p->D,
			count = p->B * heads_in(p, a) * n * D;
		size_t length = length_of(p, a), unset = 0;
		double unit = fmax(1, largest_of(r->at[a], count));
		Array packed = poisoned(count);
		want = expected(count);
		for (size_t i = 0; i < count; i++) {
			size_t at = place_of(p, a, i / D / n, i / D % n, i % D);
			reals(packed)[i] = reals(got[a])[at];
			want[i] = (Expected){ r->at[a][i], all * unit
				* (a == DQ && i % D == 0 ? far : 1) };
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
