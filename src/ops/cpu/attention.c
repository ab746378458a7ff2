/* attention.c: attention tile by tile, without the matrix of all scores */
#include "ops/cpu/cpu.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "ops/cpu/exponential.h"
#include "ops/naive_attention.h"

// find and multiply rows of a head
static real *row_of(Heads x, size_t head, size_t H, size_t row)
{
	return (real *)x.x.at + head / H * x.batch + head % H * x.head + row * x.row;
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
	size_t all = t.columns, last = t.i + r + 1;
	if (a->causal && last < t.j + all)
		all = last > t.j ? last - t.j : 0;
	return all;
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
		row_of(a->k, head, a->H, t.j), a->k.row, (Matmul){ .m = t.rows,
		.n = t.columns, .k = a->D, .trans_b = true, .alpha = a->scale });
}

// round rows of a head
/* rounds rows i ... of x to its type */
static void round_rows(const Attention *a, Heads x, size_t head, size_t i,
	size_t n)
{
	for (size_t r = 0; r < n && x.x.type != TYPE_REAL; r++)
		cpu_round((Array){ row_of(x, head, a->H, i + r), x.x.type }, a->D);
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
	size_t end = a->causal ? min_size(a->seqlen_k, t.i + t.rows) : a->seqlen_k;
	for (size_t r = 0; r < t.rows; r++)
		sums[r] = (RunningSoftmax){ -INFINITY, 0 };
	for (t.j = 0; t.j < end; t.j += columns) {
		t.columns = min_size(columns, end - t.j);
		compute_scores(a, head, t, s);
		online_softmax(a, t, sums, s, o);
		multiply(o, a->o.row, s, t.columns, row_of(a->v, head, a->H, t.j),
			a->v.row, (Matmul){ .m = t.rows, .n = a->D, .k = t.columns,
			.alpha = 1, .beta = t.j > 0 });
	}
	for (size_t r = 0; r < t.rows; r++) {
		real sum = sums[r].sum == 0 ? 1 : (real)sums[r].sum;
		for (size_t d = 0; d < a->D; d++)
			o[r * a->o.row + d] /= sum;
		((real *)a->L.at)[head * a->seqlen_q + t.i + r] =
			sums[r].largest + (real)log(sums[r].sum);
	}
	round_rows(a, a->o, head, t.i, t.rows);
}

// share tiles of queries among threads
void cpu_attention_forward_tiled(Device *d, Attention a, size_t rows,
	size_t columns)
{
	assert(a.seqlen_k > 0 && a.scale > 0);
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
	const real *dO = row_of(g->d_o, head, H, t.i), *L = (const real *)a->L.at
		+ head * a->seqlen_q + t.i;
	compute_scores(a, head, t, w.p);
	multiply(w.dp, t.columns, dO, g->d_o.row, row_of(a->v, head, H, t.j),
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
	multiply(row_of(g->dv, head, H, t.j), g->dv.row, w.p, t.columns, dO,
		g->d_o.row, down);
	multiply(row_of(g->dk, head, H, t.j), g->dk.row, w.dp, t.columns,
		row_of(a->q, head, H, t.i), a->q.row, down);
	multiply(row_of(g->dq, head, H, t.i), g->dq.row, w.dp, t.columns,
		row_of(a->k, head, H, t.j), a->k.row, (Matmul){ .m = t.rows, .n = D,
		.k = t.columns, .alpha = 1, .beta = 1 });
}

// clear gradients, and rotate them back
static void clear_rows(const Attention *a, Heads x, size_t head, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t d = 0; d < a->D; d++)
			row_of(x, head, a->H, i)[d] = 0;
}

static void rope_backward(const Attention *a, const AttentionGradient *g,
	Heads x, size_t head, size_t n)
{
	for (size_t i = 0; i < n && g->cosine.at; i++) {
		Array row = { row_of(x, head, a->H, i), TYPE_REAL };
		cpu_rope(NULL, row, row, array_at(g->cosine, i * (a->D / 2)),
			array_at(g->sine, i * (a->D / 2)), 1, 1, 1, a->D, -1);
	}
}

static void propagate_head(const Attention *a, const AttentionGradient *g,
	size_t head, size_t rows, size_t columns, ScoreGradients w)
{
	clear_rows(a, g->dq, head, a->seqlen_q);
	clear_rows(a, g->dk, head, a->seqlen_k);
	clear_rows(a, g->dv, head, a->seqlen_k);
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
		size_t end = a->causal ? min_size(a->seqlen_k, t.i + t.rows)
			: a->seqlen_k;
		for (t.j = 0; t.j < end; t.j += columns) {
			t.columns = min_size(columns, end - t.j);
			backward_tile(a, g, head, t, w);
		}
	}
	// rotate the gradients of a head back, and round them
	rope_backward(a, g, g->dq, head, a->seqlen_q);
	rope_backward(a, g, g->dk, head, a->seqlen_k);
	round_rows(a, g->dq, head, 0, a->seqlen_q);
	round_rows(a, g->dk, head, 0, a->seqlen_k);
	round_rows(a, g->dv, head, 0, a->seqlen_k);
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
		for (size_t head = 0; head < a.B * a.H; head++)
			propagate_head(&a, &g, head, rows, columns, w);
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

void cpu_attention_forward(Device *d, Attention a)
{
	cpu_attention_forward_tiled(d, a, TILE, TILE);
}

void cpu_attention_backward(Device *d, Attention a, AttentionGradient g)
{
	cpu_attention_backward_tiled(d, a, g, TILE, TILE);
}

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
