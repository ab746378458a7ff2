#include "ops/flash_attention.h"

#include <math.h>

#include "ops/ops.h"
#include "ops/outside_calls.h"

// refuse what is not supported
static Type type_of(const FlashShape *s)
{
	static const Type types[] = { TYPE_REAL, TF32, BF16, FP16 };
	return types[s->type];
}

/* grids of blocks, and their numbers, are ints */
static bool too_large(const FlashShape *s)
{
	enum { LONGEST = 65535 * 64, TILE = 32 };
	int64_t tiles = (s->seqlen_q > s->seqlen_k ? s->seqlen_q : s->seqlen_k)
		/ TILE + 4;
	return s->seqlen_q > LONGEST || s->seqlen_k > LONGEST
		|| s->batch > INT32_MAX / s->heads
		|| s->batch * s->heads > INT32_MAX / tiles;
}

/* do n sequences, none longer than `longest`, fill `total` rows? */
static bool fill_rows(const int32_t *starts, int64_t n, int64_t longest,
	int64_t total)
{
	for (int64_t i = 0; i < n; i++)
		if (starts[i] > starts[i + 1]
			|| (int64_t)starts[i + 1] - starts[i] > longest)
			return false;
	return starts[0] == 0 && starts[n] == total;
}

/* have packed sequences all that they need, and others nothing? */
static bool fit_together(const FlashShape *s)
{
	if (s->cu_seqlens_q == NULL)
		return !s->cu_seqlens_k && !s->total_q && !s->total_k;
	return s->cu_seqlens_k && s->total_q > 0 && s->total_k > 0 && (s->on_gpu
		|| (fill_rows(s->cu_seqlens_q, s->batch, s->seqlen_q, s->total_q)
		&& fill_rows(s->cu_seqlens_k, s->batch, s->seqlen_k, s->total_k)));
}

static int32_t refusal(const FlashShape *s, const FlashArray *arrays, int n,
	const float *L)
{
	if (s == NULL)
		return FLASH_NULL;
	if (s->batch < 1 || s->heads < 1 || s->seqlen_q < 1 || s->seqlen_k < 1
		|| s->head_size < 1 || s->head_size > INT32_MAX
		|| !isfinite(s->scale) || s->scale < 0
		|| s->kv_heads < 0 || (s->kv_heads > 0 && s->heads % s->kv_heads)
		|| s->causal < FLASH_FULL || s->causal > FLASH_CAUSAL_BOTTOM_RIGHT
		|| too_large(s) || !fit_together(s))
		return FLASH_BAD_SHAPE;
	if (s->type < FLASH_FP32 || s->type > FLASH_FP16
		|| (!s->on_gpu && s->type != FLASH_FP32))
		return FLASH_BAD_TYPE;
	for (int i = 0; i < n; i++)
		if (arrays[i].at == NULL)
			return FLASH_NULL;
	return L ? FLASH_OK : FLASH_NULL;
}

// describe a caller's arrays
static int64_t kv_heads(const FlashShape *s)
{
	return s->kv_heads > 0 ? s->kv_heads : s->heads;
}

/* of an array with so many rows in a sequence, and heads */
static Heads heads_of(const FlashShape *s, FlashArray x, int64_t rows,
	int64_t heads)
{
	enum { ANY = 1024 };    /* a stride that is never used, but copies well */
	return (Heads){ { x.at, type_of(s) }, s->batch == 1 ? ANY : x.batch,
		rows == 1 && !s->cu_seqlens_q ? s->head_size : x.row,
		heads == 1 ? ANY : x.head };
}

static Heads of_queries(const FlashShape *s, FlashArray x)
{
	return heads_of(s, x, s->seqlen_q, s->heads);
}

static Heads of_keys(const FlashShape *s, FlashArray x)
{
	return heads_of(s, x, s->seqlen_k, kv_heads(s));
}

/* a CPU's matmuls take the distance of rows as an int */
static bool rows_fit(const FlashShape *s, const Heads *x, int n)
{
	for (int i = 0; i < n && !s->on_gpu; i++)
		if (x[i].row < (size_t)s->head_size || x[i].row > INT32_MAX)
			return false;
	return true;
}

static Attention attention_of(const FlashShape *s, FlashArray q, FlashArray k,
	FlashArray v, FlashArray o, float *L)
{
	return (Attention){ .B = s->batch, .H = s->heads,
		.group = s->heads / kv_heads(s),
		.seqlen_q = s->seqlen_q, .seqlen_k = s->seqlen_k, .D = s->head_size,
		.causal = s->causal != FLASH_FULL,
		.bottom_right = s->causal == FLASH_CAUSAL_BOTTOM_RIGHT,
		.scale = s->scale > 0 ? s->scale : 1 / sqrt(s->head_size),
		.q = of_queries(s, q), .k = of_keys(s, k), .v = of_keys(s, v),
		.o = of_queries(s, o),
		.starts_q = s->cu_seqlens_q, .starts_k = s->cu_seqlens_k,
		.total_q = s->total_q, .total_k = s->total_k, .L = { L, TYPE_REAL } };
}

// compute attention on the caller's stream
static const int32_t status_of[] = { [CALLER_OK] = FLASH_OK,
	[CALLER_NO_GPU] = FLASH_NO_GPU, [CALLER_NO_MEMORY] = FLASH_NO_MEMORY,
	[CALLER_CAPTURES] = FLASH_CAPTURES };

/* queues the backward pass or, g NULL, the forward pass; returns a FlashStatus */
static int32_t queue_attention(Caller *c, const FlashShape *s,
	const Attention *a, const AttentionGradient *g)
{
	const Ops *o = ops_for(c->device);
	if (!o->supports_attention(c->device, type_of(s), s->head_size))
		return FLASH_BAD_HEAD_SIZE;
	CallerStatus ready = caller_queue(c, s->stream, (CallerScratch){ s->scratch,
		s->scratch_owner }, o->attention_scratch(c->device, a, g));
	if (ready == CALLER_OK && g)
		o->attention_backward(c->device, *a, *g);
	else if (ready == CALLER_OK)
		o->attention_forward(c->device, *a);
	return status_of[ready];
}

static int32_t run_attention(const FlashShape *s, const Attention *a,
	const AttentionGradient *g)
{
	Caller c;
	CallerStatus entered = caller_enter(&c, s->on_gpu, s->gpu);
	if (entered != CALLER_OK)
		return status_of[entered];
	int32_t status = queue_attention(&c, s, a, g);
	caller_leave(&c);
	return status;
}

// check the arguments, and run a pass of attention
int32_t flash_attention_forward(const FlashShape *s, FlashArray o, float *L,
	FlashArray q, FlashArray k, FlashArray v)
{
	const FlashArray all[] = { o, q, k, v };
	int32_t status = refusal(s, all, 4, L);
	if (status != FLASH_OK)
		return status;
	const Attention a = attention_of(s, q, k, v, o, L);
	return rows_fit(s, (Heads[]){ a.q, a.k, a.v, a.o }, 4)
		? run_attention(s, &a, NULL) : FLASH_BAD_SHAPE;
}

int32_t flash_attention_backward(const FlashShape *s, FlashArray dq,
	FlashArray dk, FlashArray dv, FlashArray q, FlashArray k, FlashArray v,
	FlashArray o, const float *L, FlashArray dO)
{
	const FlashArray all[] = { dq, dk, dv, q, k, v, o, dO };
	int32_t status = refusal(s, all, 8, L);
	if (status != FLASH_OK)
		return status;
	const Attention a = attention_of(s, q, k, v, o, (float *)L);
	const AttentionGradient g = { .d_o = of_queries(s, dO),
		.dq = of_queries(s, dq), .dk = of_keys(s, dk), .dv = of_keys(s, dv),
		.deterministic = s->deterministic != 0 };
	return rows_fit(s, (Heads[]){ a.q, a.k, a.v, a.o, g.d_o, g.dq, g.dk, g.dv },
		8) ? run_attention(s, &a, &g) : FLASH_BAD_SHAPE;
}

// say what a status of attention means
const char *flash_attention_status(int32_t status)
{
	static const char *const texts[] = {
		CALLER_TEXTS(FLASH),
		[FLASH_BAD_SHAPE] = "a size is not positive or too large, heads do not "
			"divide, the scale is negative or not finite, or there is no such "
			"mask",
		[FLASH_BAD_HEAD_SIZE] = "heads of this size are not supported: 16, 32, "
			"64, 80, 96, 128 and 256 are",
	};
	return caller_text(texts, sizeof texts / sizeof *texts, status);
}
