#include "estimate/memory_estimate.h"

#include <math.h>
#include <string.h>

// declare the sizes of an estimate
typedef struct EstimateSizes {
	double N, C, A, F, H, T, V, L;          /* A = H D */
	double own;                             /* tokens of the stream */
	double norm;     /* bytes of an element of a norm's output that is saved */
	/* tokens whose logits exist at a time; chunks: does the head go by
	 * chunks? */
	double tokens;
	bool chunks;
	/* bytes of an element: of TYPE_REAL; of master weights; of the stream
	 * (x); of arrays between matmuls; of the result of an elementary step;
	 * of a weight's cast; of a cast of the stream; of the copy of the
	 * stream's gradient that matmuls read */
	double real_size, master_size, x, low_size, step_size, cast_size,
		cast_stream_size, stream_copy_size;
	double attention; /* bytes of scratch of FlashAttention's backward pass */
	bool fused, flash;
} EstimateSizes;

// ask for the scratch memory of FlashAttention
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
static EstimateSizes estimate_sizes(const Model *m, size_t B, size_t T)
{
	const Backend *b = m->device->backend;
	Type linear = m->policy->op[OP_LINEAR].output,
		read = m->policy->op[OP_LINEAR].input,
		stream = m->policy->op[OP_RESIDUAL].output;
	double low_size = b->width(linear);
	double N = (double)B * T;
	return (EstimateSizes){ .N = N, .own = m->group ? N / m->group->ranks : N,
		.norm = !m->fused || (m->group && m->group->keep_norms) ? low_size : 0,
		.tokens = m->plan.head_chunk ? fmin(m->plan.head_chunk, N) : N,
		.chunks = m->plan.head_chunk > 0,
		.C = m->shape.d_model,
		.A = m->shape.heads * m->shape.d_head, .F = m->shape.d_ff,
		.H = m->shape.heads, .T = T, .V = m->shape.vocab, .L = m->shape.layers,
		.real_size = b->width(TYPE_REAL), .master_size = b->width(
		m->policy->parameter),
		.x = b->width(stream), .low_size = low_size,
		.step_size = strcmp(b->name, "cuda") == 0 ? b->width(TYPE_REAL) : 0,
		.cast_size = m->ops->reads(m->device, m->policy->parameter, read) ? 0
		: low_size,
		.cast_stream_size = m->ops->reads(m->device, stream, read) ? 0
		: low_size,
		.stream_copy_size = stream == linear ? 0 : low_size,
		.attention = attention_scratch(m, B, T), .fused = m->fused,
		.flash = m->flash };
}

// derive what blocks save
static double block_input(const EstimateSizes *s)
{
	return s->own * s->C * s->x;
}

static double saved_by_block(const EstimateSizes *s)
{
	double scores = s->flash ? s->H * s->real_size : s->H * s->T * s->low_size;
	double between = 4 * s->A + (s->fused ? 2 : 3) * s->F;
	return s->own * 2 * (s->C * s->x + s->real_size) + s->N * (2 * s->C
		* s->norm
		+ between * s->low_size + scores);
}

// count the inputs that are saved for checkpointing
/* bytes of the inputs of blocks that are saved at the same time for
 * checkpointing; *together: how many blocks are run again together */
static double block_inputs(const Model *m, const EstimateSizes *s,
	int *together)
{
	*together = m->checkpoint_every;
	if (m->checkpoint_every == 0)
		return 0;
	int levels = 0;
	for (; *together > m->recompute_blocks; *together = (*together + 1) / 2)
		levels++;
	return (ceil(s->L / m->checkpoint_every) + levels) * block_input(s);
}

// count what all blocks save
static double gate_up_nbytes(const EstimateSizes *s)
{
	return s->N * 2 * s->F * s->low_size;
}

static double qkv_nbytes(const EstimateSizes *s)
{
	return s->N * 3 * s->A * s->low_size;
}

static double saved_by_blocks(const Model *m, const EstimateSizes *s)
{
	int together;
	double others = block_inputs(m, s, &together) - block_input(s);
	if (m->checkpoint_every == 0)
		return s->L * saved_by_block(s) - m->plan.drop_gate_up * gate_up_nbytes(
			s)
			- m->plan.drop_qkv * qkv_nbytes(s);
	int rest = (int)s->L % m->checkpoint_every;
	if (rest == 0 || rest == s->L)
		return others + together * saved_by_block(s);
	return fmax(others + rest * saved_by_block(s), others - block_input(s)
		+ together * saved_by_block(s));
}

// count what is freed and made again in the last block
/* bytes that the last block has freed when its attention is propagated: what
 * its feed-forward layer saved and, in the eager path, the heads' output */
static double freed_by_then(const Model *m, const EstimateSizes *s)
{
	double gate_up = m->plan.drop_gate_up < s->L ? gate_up_nbytes(s) : 0;
	return gate_up + block_input(s) + s->N * ((s->fused ? 0 : s->F + s->A)
		* s->low_size
		+ s->C * s->norm);
}

/* bytes that the last block makes again in each half if all blocks have dropped
 * them, with the norm's output that this needs */
typedef struct Recomputed {
	double feed_forward, attention;
} Recomputed;

static Recomputed recomputed_tensors(const Model *m, const EstimateSizes *s)
{
	double norm = s->norm ? 0 : s->N * s->C * s->low_size;
	return (Recomputed){ m->plan.drop_gate_up < s->L ? 0 : gate_up_nbytes(s)
		+ norm,
		m->plan.drop_qkv < s->L ? 0 : qkv_nbytes(s) + norm };
}

// count what is saved above the blocks
/* bytes of losses, logsumexps and the last norm's factors, of tokens and
 * targets */
static double losses_and_tokens(const EstimateSizes *s)
{
	return s->N * (3 * s->real_size + 8);
}

/* bytes above the blocks: the same, the last stream, its norm, and the
 * logits or what a head in chunks leaves */
static double above_blocks(const EstimateSizes *s)
{
	double norm = s->N * s->C * (s->fused && s->chunks ? 0 : s->norm),
		dnorm = s->N * s->C * (s->fused ? s->low_size : s->real_size);
	return block_input(s) + losses_and_tokens(s) + norm + (s->chunks
		? dnorm + s->C * s->V * s->real_size : s->N * s->V * s->low_size);
}

// derive the most that temporaries take
typedef struct Temporaries {
	double chunk;                    /* during the head in chunks */
	double top;                      /* above the blocks */
	double forward;                  /* in a block */
	double base;                     /* always backward; besides it, in: */
	double last_matmul, feed_forward, attention, norm;
	double optimizer;
} Temporaries;

// derive the temporaries of each moment
static Temporaries temporary_nbytes(const EstimateSizes *s, bool train)
{
	double NC = s->N * s->C, NA = s->N * s->A, NF = s->N * s->F,
		scores = s->N * s->H * s->T,
		largest = s->C * fmax(s->V, s->F),
		gradient = s->stream_copy_size ? s->own * s->C * s->x + NC
		* s->stream_copy_size : NC * s->x,
		logits = s->tokens * s->V;
	// return the temporaries of the fused path
	if (s->fused)
		return (Temporaries){ .top = (s->chunks ? 0 : NC * s->low_size)
			+ gradient,
			.chunk = s->chunks ? (NC + logits) * s->low_size : 0,
			.forward = (NF + NC) * s->low_size,
			.base = NC * s->low_size + gradient,
			.feed_forward = NF * s->low_size,
			.attention = 4 * NA * s->low_size + s->attention
				+ (s->flash ? 0 : scores * s->low_size) };
	return (Temporaries){
		.top = s->chunks ? NC * (s->x + 3 * s->step_size)
			: fmax(logits * s->step_size, NC * s->real_size + s->C * s->V
			* s->cast_size),
		.chunk = s->chunks ? logits * s->low_size + fmax(logits * s->step_size,
			s->C * s->V * s->cast_size) : 0,
		.forward = fmax(scores * s->step_size, fmax(NF * s->step_size,
			NC * s->low_size + s->C * s->F * s->cast_size)),
		.base = NC * (s->real_size + s->x),
		.last_matmul = NF * s->low_size + NC * s->cast_stream_size + s->C
		* s->F * s->cast_size,
		.feed_forward = 2 * NF * s->low_size + fmax(3 * NF * s->step_size,
			s->C * s->F * s->cast_size),
		.attention = 4 * NA * s->low_size + scores * (s->low_size
		+ s->step_size),
		.norm = 3 * NC * s->step_size,
		.optimizer = train ? 2 * largest * s->step_size : 0,
	};
}

/* bytes of weights, of the copy for matmuls, of the tables of the rotary
 * embedding */
static double parameter_nbytes(const Model *m, const EstimateSizes *s)
{
	double tables = s->real_size * m->shape.context * m->shape.d_head,
		copy = m->compute_weights.at && m->compute_weights.at != m->weights.at
		? m->extent * s->low_size : 0;
	return m->extent * s->master_size + copy + tables;
}

// derive the most that a forward pass takes
double memory_estimate_forward(const Model *m, size_t B, size_t T)
{
	EstimateSizes s = estimate_sizes(m, B, T);
	double NC = s.N * s.C, NA = s.N * s.A, NF = s.N * s.F,
		scores = s.N * s.H * s.T, logits = s.tokens * s.V,
		stream = NC * s.x, most = 0, moments[] = {
			/* SwiGLU; the loss */
			3 * NF * s.low_size + NF * (s.fused ? 0 : s.step_size),
			NC * s.low_size + logits * s.low_size + (s.fused ? 0 : fmax(logits
			* s.step_size,
				s.C * s.V * s.cast_size)) + (s.chunks ? 2 * s.N * s.real_size
				: 0),
			/* attention; gate and up, with a cast weight */
			s.flash ? 4 * NA * s.low_size : 3 * NA * s.low_size + scores
				* s.low_size
				+ fmax(s.fused ? 0 : scores * s.step_size, NA * s.low_size),
			NC * s.low_size + 2 * NF * s.low_size + (s.fused ? 0 : s.C * s.F
			* s.cast_size) };
	for (size_t i = 0; i < sizeof moments / sizeof *moments; i++)
		most = fmax(most, moments[i]);
	return parameter_nbytes(m, &s) + stream + most + 8 * s.N;
}

double memory_estimate_block(const Model *m, size_t B, size_t T)
{
	EstimateSizes s = estimate_sizes(m, B, T);
	return saved_by_block(&s);
}

// estimate the memory of a rank
/* bytes of `slots` slots that groups 0, 1, ... use in turn. An element of
 * group 0, the embedding's, has `first` bytes, of all others `rest` */
static double slot_nbytes(const ShardMap *map, int slots, double first,
	double rest)
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

/* elements that the rank updates by AdamW, without padding */
static double owned_elements(const Sharding *s)
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

// estimate the weights of a rank
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
	return slot_nbytes(s->map, s->stage == 3 ? s->prefetch + 1
		: s->map->ngroups,
		r, low) + (apart / s->map->ranks + s->map->gains) * r
		+ lows / s->map->ranks * low;
}

// estimate the gradients of a rank
static double sharded_gradients(const Model *m, const Sharding *s)
{
	const Backend *b = m->device->backend;
	double wire = b->width(s->wire), both = wire
		+ (m->policy->op[OP_LINEAR].input == s->wire
		|| m->policy->gradient == s->wire ? 0 : b->width(m->policy->gradient));
	int apart = s->exchange ? s->map->ranks : s->stage > 1;
	double sums = s->early ? slot_nbytes(s->map, 2, wire, wire)
		: s->map->extent * wire;
	return slot_nbytes(s->map, apart ? 2 : s->map->ngroups, both, both)
		+ s->map->gains * (both + (s->exchange ? (apart - 1) * wire : 0))
		+ apart * sums / s->map->ranks;
}

// replace the categories that are sharded
MemoryEstimate memory_estimate_sharded(const Model *m, size_t B, size_t T,
	const Sharding *s)
{
	EstimateSizes sizes = estimate_sizes(m, B, T);
	MemoryEstimate a = memory_estimate(m, B, T, true);
	double kept[] = { [MEM_PARAMETER] = sharded_weights(m, s)
		+ sizes.real_size * m->shape.context * m->shape.d_head,
		[MEM_GRADIENT] = sharded_gradients(m, s),
		[MEM_OPTIMIZER] = 2 * owned_elements(s) * sizes.master_size };
	for (int k = 0; k <= MEM_OPTIMIZER; k++) {
		a.total += kept[k] - a.category[k];
		a.category[k] = kept[k];
	}
	return a;
}

// estimate the memory of a step
MemoryEstimate memory_estimate(const Model *m, size_t B, size_t T, bool train)
{
	EstimateSizes s = estimate_sizes(m, B, T);
	double blocks = saved_by_blocks(m, &s),
		above = above_blocks(&s) + (m->checkpoint_every > 0
		? ceil(s.L / m->checkpoint_every) * block_input(&s) : blocks);
	Temporaries t = temporary_nbytes(&s, train);
	Recomputed again = recomputed_tensors(m, &s);
	double head = fmax(t.chunk, t.top), gone = freed_by_then(m, &s);
	MemoryEstimate a = { .category = {
		[MEM_PARAMETER] = parameter_nbytes(m, &s),
		[MEM_GRADIENT] = m->extent
			* (double)m->device->backend->width(m->gradients.type),
		[MEM_OPTIMIZER] = train ? 2 * m->count * s.master_size : 0,
		[MEM_ACTIVATION] = fmax(above, blocks + losses_and_tokens(&s)
			+ (m->checkpoint_every > 0 && !s.fused ? block_input(&s) : 0)
			+ fmax(again.feed_forward, again.attention - gone)),
		[MEM_TEMPORARY] = fmax(fmax(head, t.forward), fmax(t.optimizer,
			t.base + fmax(t.feed_forward, fmax(t.attention, t.norm)))),
	} };
	// add up what exists at the same time
	double kept = a.category[MEM_PARAMETER] + a.category[MEM_GRADIENT]
		+ a.category[MEM_OPTIMIZER];
	/* the norm's output, after the last chunk of the head */
	double left = s.chunks && !s.fused ? s.N * s.C * s.norm : 0;
	double below = blocks + losses_and_tokens(&s) + t.base, moments[] = {
		above + t.chunk, above + t.top - left,
		below + fmax(t.last_matmul, t.norm),
		below + t.feed_forward - (s.fused ? 0 : s.N * s.F * s.low_size)
			+ again.feed_forward,
		below - gone + t.attention + again.attention, t.optimizer };
	for (size_t i = 0; i < sizeof moments / sizeof *moments; i++)
		a.total = fmax(a.total, kept + moments[i]);
	return a;
}
