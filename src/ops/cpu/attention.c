/* attention.c: attention tile by tile, without the matrix of all scores */
#include "ops/cpu/cpu.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "ops/attention_plan.h"
#include "ops/cpu/exponential.h"
#include "ops/naive_attention.h"

// find and multiply rows of a head
static real *row_of(Heads x, size_t head, size_t H, size_t row)
{
	return (real *)x.x.at + head / H * x.batch + head % H * x.head + row * x.row;
}

/* of an array with a head for each group; head: of Q */
static real *shared_row_of(const Attention *a, Heads x, size_t head, size_t row)
{
	return row_of(x, head / a->group, a->H / a->group, row);
}

/* L of a head, counted over sequences, from query i on */
static real *L_of(const Attention *a, size_t head, size_t i)
{
	size_t queries = a->total_q ? a->total_q : a->seqlen_q;
	return (real *)a->L.at + head * queries + i;
}

static void multiply(real *c, size_t ldc, const real *a, size_t lda,
	const real *b, size_t ldb, Matmul s)
{
	s.lda = lda, s.ldb = ldb, s.ldc = ldc;
	cpu_matmul(NULL, (Array){ c, TYPE_REAL }, (Array){ (real *)a, TYPE_REAL },
		(Array){ (real *)b, TYPE_REAL }, s);
}

// look at a tile
typedef struct AttentionTile {
	size_t i, rows, j, columns;     /* queries i ..., keys j ... */
} AttentionTile;

/* how many columns row r of the tile sees */
static size_t visible_columns(const Attention *a, AttentionTile t, size_t r)
{
	ptrdiff_t seen = (ptrdiff_t)(t.i + r + 1 - t.j) + mask_diagonal(a);
	if (!a->causal || seen >= (ptrdiff_t)t.columns)
		return t.columns;
	return seen > 0 ? (size_t)seen : 0;
}

/* the key after the last that queries before `end` see */
static size_t last_key(const Attention *a, size_t end)
{
	return keys_seen((int)end, (int)a->seqlen_k, a->causal, mask_diagonal(a));
}

// take the smaller of two sizes
static size_t min_size(size_t x, size_t y)
{
	return x < y ? x : y;
}

// compute the scores of a tile
/* s (rows, columns) = scale Q K^T */
static void compute_scores(const Attention *a, size_t head, AttentionTile t,
	real *s)
{
	multiply(s, t.columns, row_of(a->q, head, a->H, t.i), a->q.row,
		shared_row_of(a, a->k, head, t.j), a->k.row, (Matmul){ .m = t.rows,
		.n = t.columns, .k = a->D, .trans_b = true, .alpha = a->scale });
}

// round rows of a head
/* rounds rows i ... of one of the H heads of x to its type */
static void round_rows(const Attention *a, Heads x, size_t head, size_t H,
	size_t i, size_t n)
{
	for (size_t r = 0; r < n && x.x.type != TYPE_REAL; r++)
		cpu_round((Array){ row_of(x, head, H, i + r), x.x.type }, a->D);
}

// compute attention of a tile of queries
typedef struct RunningSoftmax {
	real largest;
	double sum;
} RunningSoftmax;

/* turns scores into probabilities; o shrinks as the maximum grows */
static void online_softmax(const Attention *a, AttentionTile t,
	RunningSoftmax *sums, real *s, real *o)
{
	for (size_t r = 0; r < t.rows; r++) {
		size_t n = visible_columns(a, t, r);
		real *x = s + r * t.columns, largest = sums[r].largest;
		for (size_t c = 0; c < n; c++)
			largest = x[c] > largest ? x[c] : largest;
		real base = finite_base(largest);
		real rescale = exponential(sums[r].largest - base);
		double sum = 0;
		#pragma omp simd reduction(+:sum)
		for (size_t c = 0; c < n; c++)
			sum += x[c] = exponential(x[c] - base);
		for (size_t c = n; c < t.columns; c++)
			x[c] = 0;
		for (size_t d = 0; d < a->D && t.j > 0; d++)
			o[r * a->o.row + d] *= rescale;
		sums[r].sum = sums[r].sum * rescale + sum;
		sums[r].largest = largest;
	}
}

static void attention_head(const Attention *a, size_t head, AttentionTile t,
	size_t columns, RunningSoftmax *sums, real *s)
{
	real *o = row_of(a->o, head, a->H, t.i);
	size_t end = last_key(a, t.i + t.rows);
	for (size_t r = 0; r < t.rows; r++)
		sums[r] = (RunningSoftmax){ -INFINITY, 0 };
	for (size_t i = 0; i < t.rows * a->D && end == 0; i++)
		o[i / a->D * a->o.row + i % a->D] = 0;      /* there is no key */
	for (t.j = 0; t.j < end; t.j += columns) {
		t.columns = min_size(columns, end - t.j);
		compute_scores(a, head, t, s);
		online_softmax(a, t, sums, s, o);
		multiply(o, a->o.row, s, t.columns, shared_row_of(a, a->v, head, t.j),
			a->v.row, (Matmul){ .m = t.rows, .n = a->D, .k = t.columns,
			.alpha = 1, .beta = t.j > 0 });
	}
	for (size_t r = 0; r < t.rows; r++) {
		real sum = sums[r].sum == 0 ? 1 : (real)sums[r].sum;
		for (size_t d = 0; d < a->D; d++)
			o[r * a->o.row + d] /= sum;
		*L_of(a, head, t.i + r) = sums[r].largest + (real)log(sums[r].sum);
	}
	round_rows(a, a->o, head, a->H, t.i, t.rows);
}

// share tiles of queries among threads
void cpu_attention_forward_tiled(Device *d, Attention a, size_t rows,
	size_t columns)
{
	assert(a.scale > 0 && a.starts_q == NULL);
	size_t tiles = (a.seqlen_q + rows - 1) / rows;
	#pragma omp parallel
	{
		real *s = need(malloc(rows * columns * sizeof *s));
		RunningSoftmax *sums = need(malloc(rows * sizeof *sums));
		#pragma omp for schedule(dynamic)
		for (size_t i = 0; i < a.B * a.H * tiles; i++) {
			size_t first = i % tiles * rows;
			attention_head(&a, i / tiles, (AttentionTile){ .i = first,
				.rows = min_size(rows, a.seqlen_q - first) }, columns, sums, s);
		}
		free(sums);
		free(s);
	}
}

// propagate through the attention of a head
typedef struct ScoreGradients {
	real *p, *dp, *delta;   /* (rows, columns) twice, (queries) */
} ScoreGradients;

static void backward_tile(const Attention *a, const AttentionGradient *g,
	size_t head, AttentionTile t, ScoreGradients w)
{
	size_t H = a->H, D = a->D;
	const real *dO = row_of(g->d_o, head, H, t.i), *L = L_of(a, head, t.i);
	compute_scores(a, head, t, w.p);
	multiply(w.dp, t.columns, dO, g->d_o.row, shared_row_of(a, a->v, head, t.j),
		a->v.row, (Matmul){ .m = t.rows, .n = t.columns, .k = D,
		.trans_b = true, .alpha = 1 });
	for (size_t r = 0; r < t.rows; r++) {
		real *p = w.p + r * t.columns, *dp = w.dp + r * t.columns;
		size_t n = visible_columns(a, t, r);
		real l = finite_base(L[r]), delta = w.delta[t.i + r];
		#pragma omp simd
		for (size_t c = 0; c < n; c++) {
			p[c] = exponential(p[c] - l);
			dp[c] = p[c] * (dp[c] - delta) * (real)a->scale;
		}
		for (size_t c = n; c < t.columns; c++)
			p[c] = dp[c] = 0;
	}
	Matmul down = { .m = t.columns, .n = D, .k = t.rows, .trans_a = true,
		.alpha = 1, .beta = 1 };
	multiply(shared_row_of(a, g->dv, head, t.j), g->dv.row, w.p, t.columns, dO,
		g->d_o.row, down);
	multiply(shared_row_of(a, g->dk, head, t.j), g->dk.row, w.dp, t.columns,
		row_of(a->q, head, H, t.i), a->q.row, down);
	multiply(row_of(g->dq, head, H, t.i), g->dq.row, w.dp, t.columns,
		shared_row_of(a, a->k, head, t.j), a->k.row, (Matmul){ .m = t.rows,
		.n = D, .k = t.columns, .alpha = 1, .beta = 1 });
}

// clear gradients, and rotate them back
static void clear_rows(const Attention *a, Heads x, size_t head, size_t H,
	size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t d = 0; d < a->D; d++)
			row_of(x, head, H, i)[d] = 0;
}

static void rope_backward(const Attention *a, const AttentionGradient *g,
	Heads x, size_t head, size_t H, size_t n)
{
	for (size_t i = 0; i < n && g->cosine.at; i++) {
		Array row = { row_of(x, head, H, i), TYPE_REAL };
		cpu_rope_row(row, row, array_at(g->cosine, i * (a->D / 2)),
			array_at(g->sine, i * (a->D / 2)), 1, a->D, -1);
	}
}

static void propagate_head(const Attention *a, const AttentionGradient *g,
	size_t head, size_t rows, size_t columns, ScoreGradients w)
{
	clear_rows(a, g->dq, head, a->H, a->seqlen_q);
	// find delta of each query
	for (size_t i = 0; i < a->seqlen_q; i++) {
		const real *o = row_of(a->o, head, a->H, i),
			*dO = row_of(g->d_o, head, a->H, i);
		double sum = 0;
		for (size_t d = 0; d < a->D; d++)
			sum += (double)o[d] * dO[d];
		w.delta[i] = (real)sum;
	}
	for (AttentionTile t = { 0 }; t.i < a->seqlen_q; t.i += rows) {
		t.rows = min_size(rows, a->seqlen_q - t.i);
		size_t end = last_key(a, t.i + t.rows);
		for (t.j = 0; t.j < end; t.j += columns) {
			t.columns = min_size(columns, end - t.j);
			backward_tile(a, g, head, t, w);
		}
	}
	rope_backward(a, g, g->dq, head, a->H, a->seqlen_q);
	round_rows(a, g->dq, head, a->H, 0, a->seqlen_q);
}

// propagate through the attention of a head
/* shared: a head of K and V; all heads of Q that share it */
static void propagate_group(const Attention *a, const AttentionGradient *g,
	size_t shared, size_t rows, size_t columns, ScoreGradients w)
{
	size_t H = a->H / a->group, n = a->seqlen_k;
	clear_rows(a, g->dk, shared, H, n);
	clear_rows(a, g->dv, shared, H, n);
	for (size_t i = 0; i < a->group; i++)
		propagate_head(a, g, shared * a->group + i, rows, columns, w);
	rope_backward(a, g, g->dk, shared, H, n);
	round_rows(a, g->dk, shared, H, 0, n);
	round_rows(a, g->dv, shared, H, 0, n);
}

// share heads among threads
void cpu_attention_backward_tiled(Device *d, Attention a, AttentionGradient g,
	size_t rows, size_t columns)
{
	#pragma omp parallel
	{
		ScoreGradients w = { .p = need(malloc(rows * columns * sizeof *w.p)),
			.dp = need(malloc(rows * columns * sizeof *w.dp)),
			.delta = need(malloc(a.seqlen_q * sizeof *w.delta)) };
		#pragma omp for schedule(dynamic)
		for (size_t shared = 0; shared < a.B * a.H / a.group; shared++)
			propagate_group(&a, &g, shared, rows, columns, w);
		free(w.p);
		free(w.dp);
		free(w.delta);
	}
}

// list the attention kernel of the CPU
bool cpu_supports_attention(Device *d, Type type, size_t D)
{
	(void)type, (void)D;
	return true;
}

enum { TILE = 64 };                     /* queries, and keys, of a tile */

// take packed sequences apart
/* one for all sequences, or one for each, if they are packed */
static size_t problems_of(const Attention *a)
{
	return a->starts_q ? a->B : 1;
}

static Heads from_row(Heads x, const int *starts, size_t b)
{
	x.x = array_at(x.x, starts[b] * x.row);
	return x;
}

static Attention sequence_of(const Attention *a, size_t b)
{
	Attention one = *a;
	const int *q = a->starts_q, *k = a->starts_k;
	if (q == NULL)
		return one;
	one.B = 1, one.starts_q = one.starts_k = NULL;
	one.seqlen_q = q[b + 1] - q[b], one.seqlen_k = k[b + 1] - k[b];
	one.q = from_row(a->q, q, b), one.o = from_row(a->o, q, b);
	one.k = from_row(a->k, k, b), one.v = from_row(a->v, k, b);
	one.L = array_at(a->L, q[b]);
	return one;
}

static AttentionGradient gradient_of_sequence(const Attention *a,
	const AttentionGradient *g, size_t b)
{
	AttentionGradient one = *g;
	const int *q = a->starts_q, *k = a->starts_k;
	if (q == NULL)
		return one;
	one.d_o = from_row(g->d_o, q, b), one.dq = from_row(g->dq, q, b);
	one.dk = from_row(g->dk, k, b), one.dv = from_row(g->dv, k, b);
	return one;
}

void cpu_attention_forward(Device *d, Attention a)
{
	for (size_t b = 0; b < problems_of(&a); b++)
		cpu_attention_forward_tiled(d, sequence_of(&a, b), TILE, TILE);
}

void cpu_attention_backward(Device *d, Attention a, AttentionGradient g)
{
	for (size_t b = 0; b < problems_of(&a); b++)
		cpu_attention_backward_tiled(d, sequence_of(&a, b),
			gradient_of_sequence(&a, &g, b), TILE, TILE);
}

// list the attention kernel of the CPU
static bool supports_all(Device *d, const Attention *a,
	const AttentionGradient *g)
{
	return true;
}

/* a few tiles for each thread */
size_t cpu_attention_scratch(Device *d, const Attention *a,
	const AttentionGradient *g)
{
	return 0;
}

const AttentionKernel cpu_attention_kernels[] = {
	{ "naive", naive_attention_supports, naive_attention_forward,
		naive_attention_backward, naive_attention_scratch, true },
	{ "tiled", supports_all, cpu_attention_forward,
		cpu_attention_backward, cpu_attention_scratch },
	{ 0 }
};
