#include "model/memory_estimate.h"

#include <math.h>
#include <string.h>

typedef struct Sizes {
	double N, C, A, F, H, T, V, L;          /* A = H D */
	double own;                             /* tokens of the stream */
	double norm;     /* bytes of an element of a norm's output that is saved */
	/* tokens whose logits are there; in chunks: are these not all? */
	double tokens;
	bool chunks;
	/* bytes of an element of TYPE_REAL, of masters, of the stream, between
	 * matmuls, of an elementary step's result, of a cast weight and of a cast of
	 * the stream, and of the stream's gradient for matmuls */
	double r, p, x, w, step, cast, cast_x, low;
	double attention; /* bytes of scratch of FlashAttention's backward pass */
	bool fused, flash;
} Sizes;

static double attention_scratch(const Model *m, size_t B, size_t T)
{
	size_t H = m->shape.heads, D = m->shape.d_head, A = H * D;
	Heads three = { { NULL, m->policy->op[OP_SCORES].input }, T * 3 * A, 3 * A,
		D }, one = { three.x, T * A, A, D };
	Attention a = { .B = B, .H = H, .seqlen_q = T, .seqlen_k = T, .D = D,
		.causal = true, .q = three, .k = three, .v = three, .o = one };
	AttentionGradient g = { .d_o = one, .dq = three, .dk = three, .dv = three };
	return m->flash ? m->ops->attention_scratch(m->device, &a, &g) : 0;
}

// find the sizes of an estimate
static Sizes sizes_of(const Model *m, size_t B, size_t T)
{
	const Backend *b = m->device->backend;
	Type linear = m->policy->op[OP_LINEAR].output,
		read = m->policy->op[OP_LINEAR].input,
		stream = m->policy->op[OP_RESIDUAL].output;
	double w = b->width(linear);
	double N = (double)B * T;
	return (Sizes){ .N = N, .own = m->group ? N / m->group->ranks : N,
		.norm = !m->fused || (m->group && m->group->keep_norms) ? w : 0,
		.tokens = m->plan.head_chunk ? fmin(m->plan.head_chunk, N) : N,
		.chunks = m->plan.head_chunk > 0,
		.C = m->shape.d_model,
		.A = m->shape.heads * m->shape.d_head, .F = m->shape.d_ff,
		.H = m->shape.heads, .T = T, .V = m->shape.vocab, .L = m->shape.layers,
		.r = b->width(TYPE_REAL), .p = b->width(m->policy->parameter),
		.x = b->width(stream), .w = w,
		.step = strcmp(b->name, "cuda") == 0 ? b->width(TYPE_REAL) : 0,
		.cast = m->ops->reads(m->device, m->policy->parameter, read) ? 0 : w,
		.cast_x = m->ops->reads(m->device, stream, read) ? 0 : w,
		.low = stream == linear ? 0 : w,
		.attention = attention_scratch(m, B, T), .fused = m->fused,
		.flash = m->flash };
}

// derive what blocks save
static double input_of(const Sizes *s)
{
	return s->own * s->C * s->x;
}

static double saved_by_block(const Sizes *s)
{
	double scores = s->flash ? s->H * s->r : s->H * s->T * s->w;
	double between = 4 * s->A + (s->fused ? 2 : 3) * s->F;
	return s->own * 2 * (s->C * s->x + s->r) + s->N * (2 * s->C * s->norm
		+ between * s->w + scores);
}

/* inputs of blocks that are saved for themselves at the same time; together:
 * blocks that are run together */
static double inputs_of(const Model *m, const Sizes *s, int *together)
{
	*together = m->checkpoint_every;
	if (m->checkpoint_every == 0)
		return 0;
	int levels = 0;
	for (; *together > m->recompute_blocks; *together = (*together + 1) / 2)
		levels++;
	return (ceil(s->L / m->checkpoint_every) + levels) * input_of(s);
}

static double gate_up_of(const Sizes *s)
{
	return s->N * 2 * s->F * s->w;
}

static double qkv_of(const Sizes *s)
{
	return s->N * 3 * s->A * s->w;
}

static double blocks_of(const Model *m, const Sizes *s)
{
	int together;
	double others = inputs_of(m, s, &together) - input_of(s);
	if (m->checkpoint_every == 0)
		return s->L * saved_by_block(s) - m->plan.drop_gate_up * gate_up_of(s)
			- m->plan.drop_qkv * qkv_of(s);
	int rest = (int)s->L % m->checkpoint_every;
	if (rest == 0 || rest == s->L)
		return others + together * saved_by_block(s);
	return fmax(others + rest * saved_by_block(s), others - input_of(s)
		+ together * saved_by_block(s));
}

/* what the last block's feed-forward layer saved, and in the eager path the
 * heads' output */
static double gone_of(const Model *m, const Sizes *s)
{
	double gate_up = m->plan.drop_gate_up < s->L ? gate_up_of(s) : 0;
	return gate_up + input_of(s) + s->N * ((s->fused ? 0 : s->F + s->A) * s->w
		+ s->C * s->norm);
}

/* by the last block in its halves, if all have dropped it, with the norm's output
 * that it takes */
typedef struct Again {
	double feed_forward, attention;
} Again;

static Again made_again(const Model *m, const Sizes *s)
{
	double norm = s->norm ? 0 : s->N * s->C * s->w;
	return (Again){ m->plan.drop_gate_up < s->L ? 0 : gate_up_of(s) + norm,
		m->plan.drop_qkv < s->L ? 0 : qkv_of(s) + norm };
}

/* losses, their logsumexp, the last norm's factor; tokens and targets */
static double rest_of(const Sizes *s)
{
	return s->N * (3 * s->r + 8);
}

/* besides, the last input, its norm and the logits, or what chunks leave */
static double top_of(const Sizes *s)
{
	double norm = s->N * s->C * (s->fused && s->chunks ? 0 : s->norm),
		dnorm = s->N * s->C * (s->fused ? s->w : s->r);
	return input_of(s) + rest_of(s) + norm + (s->chunks
		? dnorm + s->C * s->V * s->r : s->N * s->V * s->w);
}

// derive the most that temporaries take
typedef struct Temporaries {
	double chunk;                    /* while the head goes by chunks */
	double top;                      /* above the blocks */
	double forward;                  /* in a block */
	double base;                     /* backward, always, and besides in: */
	double last_matmul, feed_forward, attention, norm;
	double optimizer;
} Temporaries;

static Temporaries temporaries_of(const Sizes *s, bool train)
{
	double NC = s->N * s->C, NA = s->N * s->A, NF = s->N * s->F,
		scores = s->N * s->H * s->T,
		largest = s->C * fmax(s->V, s->F),
		gradient = s->low ? s->own * s->C * s->x + NC * s->low : NC * s->x,
		logits = s->tokens * s->V;
	if (s->fused)
		return (Temporaries){ .top = (s->chunks ? 0 : NC * s->w) + gradient,
			.chunk = s->chunks ? (NC + logits) * s->w : 0,
			.forward = (NF + NC) * s->w,
			.base = NC * s->w + gradient,
			.feed_forward = NF * s->w,
			.attention = 4 * NA * s->w + s->attention
				+ (s->flash ? 0 : scores * s->w) };
	return (Temporaries){
		.top = s->chunks ? NC * (s->x + 3 * s->step)
			: fmax(logits * s->step, NC * s->r + s->C * s->V * s->cast),
		.chunk = s->chunks ? logits * s->w + fmax(logits * s->step,
			s->C * s->V * s->cast) : 0,
		.forward = fmax(scores * s->step, fmax(NF * s->step,
			NC * s->w + s->C * s->F * s->cast)),
		.base = NC * (s->r + s->x),
		.last_matmul = NF * s->w + NC * s->cast_x + s->C * s->F * s->cast,
		.feed_forward = 2 * NF * s->w + fmax(3 * NF * s->step,
			s->C * s->F * s->cast),
		.attention = 4 * NA * s->w + scores * (s->w + s->step),
		.norm = 3 * NC * s->step,
		.optimizer = train ? 2 * largest * s->step : 0,
	};
}

/* weights, a copy for matmuls, and the tables of the rotary embedding */
static double parameters_of(const Model *m, const Sizes *s)
{
	double tables = s->r * m->shape.context * m->shape.d_head,
		copy = m->compute_weights.at && m->compute_weights.at != m->weights.at
		? m->extent * s->w : 0;
	return m->extent * s->p + copy + tables;
}

// derive the most that a forward pass takes
double memory_estimate_forward(const Model *m, size_t B, size_t T)
{
	Sizes s = sizes_of(m, B, T);
	double NC = s.N * s.C, NA = s.N * s.A, NF = s.N * s.F,
		scores = s.N * s.H * s.T, logits = s.tokens * s.V,
		stream = NC * s.x, most = 0, moments[] = {
			/* SwiGLU; the loss */
			3 * NF * s.w + NF * (s.fused ? 0 : s.step),
			NC * s.w + logits * s.w + (s.fused ? 0 : fmax(logits * s.step,
				s.C * s.V * s.cast)) + (s.chunks ? 2 * s.N * s.r : 0),
			/* attention; gate and up, with a cast weight */
			s.flash ? 4 * NA * s.w : 3 * NA * s.w + scores * s.w
				+ fmax(s.fused ? 0 : scores * s.step, NA * s.w),
			NC * s.w + 2 * NF * s.w + (s.fused ? 0 : s.C * s.F * s.cast) };
	for (size_t i = 0; i < sizeof moments / sizeof *moments; i++)
		most = fmax(most, moments[i]);
	return parameters_of(m, &s) + stream + most + 8 * s.N;
}

double memory_estimate_block(const Model *m, size_t B, size_t T)
{
	Sizes s = sizes_of(m, B, T);
	return saved_by_block(&s);
}

// estimate the memory of a rank
/* bytes of as many slots for groups 0, 1, ... in turn, of which the embedding's
 * has elements of another width */
static double slots_of(const ShardMap *map, int slots, double first, double rest)
{
	double sum = 0;
	for (int j = 0; j < slots && j < map->ngroups; j++) {
		double most = 0;
		for (int k = j; k < map->ngroups; k += slots)
			most = fmax(most, map->groups[k].extent * (k ? rest : first));
		sum += most;
	}
	return sum;
}

/* what AdamW updates; no padding */
static double owned_by(const Sharding *s)
{
	double n = s->map->gains;
	for (int i = 0; i < shape_nparameters(&s->map->shape); i++) {
		if (shape_parameter(&s->map->shape, i).gain)
			continue;
		ShardRange own = shard_map_range(s->map, i, s->rank);
		n += own.end - own.begin;
	}
	return n;
}

static double sharded_weights(const Model *m, const Sharding *s)
{
	const Backend *b = m->device->backend;
	Type linear = m->policy->op[OP_LINEAR].input;
	Type parameter = m->policy->parameter;
	bool copies = m->fused && !m->ops->reads(m->device, parameter, linear);
	double r = b->width(parameter), low = copies ? b->width(linear) : r,
		units = s->map->extent - s->map->groups[0].extent,
		apart = s->stage == 3 ? s->map->extent : copies ? units : 0,
		lows = s->stage == 3 && copies ? units : 0;
	return slots_of(s->map, s->stage == 3 ? s->prefetch + 1 : s->map->ngroups,
		r, low) + (apart / s->map->ranks + s->map->gains) * r
		+ lows / s->map->ranks * low;
}

static double sharded_gradients(const Model *m, const Sharding *s)
{
	const Backend *b = m->device->backend;
	double wire = b->width(s->wire), both = wire
		+ (m->policy->op[OP_LINEAR].input == s->wire
		|| m->policy->gradient == s->wire ? 0 : b->width(m->policy->gradient));
	int apart = s->exchange ? s->map->ranks : s->stage > 1;
	double sums = s->early ? slots_of(s->map, 2, wire, wire)
		: s->map->extent * wire;
	return slots_of(s->map, apart ? 2 : s->map->ngroups, both, both)
		+ s->map->gains * (both + (s->exchange ? (apart - 1) * wire : 0))
		+ apart * sums / s->map->ranks;
}

MemoryEstimate memory_estimate_sharded(const Model *m, size_t B, size_t T,
	const Sharding *s)
{
	Sizes sizes = sizes_of(m, B, T);
	MemoryEstimate a = memory_estimate(m, B, T, true);
	double kept[] = { [MEM_PARAMETER] = sharded_weights(m, s)
		+ sizes.r * m->shape.context * m->shape.d_head,
		[MEM_GRADIENT] = sharded_gradients(m, s),
		[MEM_OPTIMIZER] = 2 * owned_by(s) * sizes.p };
	for (int k = 0; k <= MEM_OPTIMIZER; k++) {
		a.total += kept[k] - a.category[k];
		a.category[k] = kept[k];
	}
	return a;
}

MemoryEstimate memory_estimate(const Model *m, size_t B, size_t T, bool train)
{
	Sizes s = sizes_of(m, B, T);
	double blocks = blocks_of(m, &s),
		above = top_of(&s) + (m->checkpoint_every > 0
		? ceil(s.L / m->checkpoint_every) * input_of(&s) : blocks);
	Temporaries t = temporaries_of(&s, train);
	Again again = made_again(m, &s);
	double head = fmax(t.chunk, t.top), gone = gone_of(m, &s);
	MemoryEstimate a = { .category = {
		[MEM_PARAMETER] = parameters_of(m, &s),
		[MEM_GRADIENT] = m->extent
			* (double)m->device->backend->width(m->gradients.type),
		[MEM_OPTIMIZER] = train ? 2 * m->count * s.p : 0,
		[MEM_ACTIVATION] = fmax(above, blocks + rest_of(&s)
			+ (m->checkpoint_every > 0 && !s.fused ? input_of(&s) : 0)
			+ fmax(again.feed_forward, again.attention - gone)),
		[MEM_TEMPORARY] = fmax(fmax(head, t.forward), fmax(t.optimizer,
			t.base + fmax(t.feed_forward, fmax(t.attention, t.norm)))),
	} };
	// add up what exists at the same time
	double kept = a.category[MEM_PARAMETER] + a.category[MEM_GRADIENT]
		+ a.category[MEM_OPTIMIZER];
	/* the norm's output, after the last chunk of the head */
	double left = s.chunks && !s.fused ? s.N * s.C * s.norm : 0;
	double below = blocks + rest_of(&s) + t.base, moments[] = {
		above + t.chunk, above + t.top - left,
		below + fmax(t.last_matmul, t.norm),
		below + t.feed_forward - (s.fused ? 0 : s.N * s.F * s.w)
			+ again.feed_forward,
		below - gone + t.attention + again.attention, t.optimizer };
	for (size_t i = 0; i < sizeof moments / sizeof *moments; i++)
		a.total = fmax(a.total, kept + moments[i]);
	return a;
}
