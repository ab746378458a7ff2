/* attention_problem.h: a problem of attention, and its arrays, with gaps */
#ifndef TESTS_OPS_ATTENTION_PROBLEM_H
#define TESTS_OPS_ATTENTION_PROBLEM_H

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

#endif
