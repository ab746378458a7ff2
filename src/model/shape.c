#include "model/shape.h"

#include <assert.h>
#include <stdio.h>

// split a width into heads
const char *shape_split_heads(Shape *s)
{
	if (s->heads > 0 && s->d_model % s->heads != 0)
		return "d_model is a multiple of the number of heads";
	s->d_head = s->heads > 0 ? s->d_model / s->heads : 0;
	return NULL;
}

// say why a shape is impossible
const char *shape_error(const Shape *s)
{
	if (s->vocab < 1 || s->context < 1 || s->d_model < 1 || s->d_ff < 1
		|| s->layers < 1 || s->heads < 1 || s->d_head < 1)
		return "every dimension is at least 1";
	if (s->d_head % 2 != 0)
		return "the size of a head is even, since rotary embeddings turn pairs";
	return NULL;
}

// count and describe the parameters
int shape_nparameters(const Shape *s)
{
	return 1 + (int)s->layers * NBLOCK + 2;
}

int shape_block_parameter(const Shape *s, int layer, BlockParameter which)
{
	assert(layer >= 0 && layer < s->layers && which < NBLOCK);
	return 1 + layer * NBLOCK + (int)which;
}

int shape_nunits(const Shape *s)
{
	return (int)s->layers + 2;
}

// count the elements of units
static size_t aligned(size_t n)
{
	return (n + UNIT_ALIGN - 1) / UNIT_ALIGN * UNIT_ALIGN;
}

/* elements of a unit of each kind, without padding */
static size_t embedding_count(const Shape *s)
{
	return (size_t)s->vocab * s->d_model;
}

static size_t block_count(const Shape *s)
{
	size_t C = s->d_model, A = s->heads * s->d_head, F = s->d_ff;
	return 4 * A * C + 3 * C * F + 2 * C;
}

static size_t head_count(const Shape *s)
{
	return s->d_model + embedding_count(s);
}

size_t shape_count(const Shape *s)
{
	return embedding_count(s) + s->layers * block_count(s) + head_count(s);
}

// find the offset of each unit
Unit shape_unit(const Shape *s, int unit)
{
	size_t embedding = aligned(embedding_count(s)),
		block = aligned(block_count(s));
	int last = shape_nunits(s) - 1;
	assert(unit >= 0 && unit <= last);
	if (unit == 0)
		return (Unit){ 0, 1, 0, embedding };
	Unit u = { 1 + (unit - 1) * NBLOCK, NBLOCK,
		embedding + (unit - 1) * block, block };
	if (unit == last)
		u.count = 2, u.extent = aligned(head_count(s));
	return u;
}

size_t shape_extent(const Shape *s)
{
	Unit last = shape_unit(s, shape_nunits(s) - 1);
	return last.offset + last.extent;
}

// describe one parameter of a block
static Parameter block_parameter(const Shape *s, int layer, int which)
{
	size_t C = s->d_model, A = s->heads * s->d_head, F = s->d_ff;
	const struct { const char *name; size_t rows, columns; } block[NBLOCK] = {
		[P_LN1] = { "ln1", 1, C },
		[P_Q] = { "attn.q_proj", A, C },
		[P_K] = { "attn.k_proj", A, C },
		[P_V] = { "attn.v_proj", A, C },
		[P_OUTPUT] = { "attn.output_proj", C, A },
		[P_LN2] = { "ln2", 1, C },
		[P_W1] = { "ffn.w1", F, C },
		[P_W3] = { "ffn.w3", F, C },
		[P_W2] = { "ffn.w2", C, F },
	};
	Parameter p = { .rows = block[which].rows, .columns = block[which].columns,
		.offset = shape_unit(s, 1 + layer).offset,
		.gain = which == P_LN1 || which == P_LN2 };
	for (int i = 0; i < which; i++)
		p.offset += block[i].rows * block[i].columns;
	p.count = p.rows * p.columns;
	snprintf(p.name, sizeof p.name, "layers.%d.%s.weight", layer,
		block[which].name);
	return p;
}

// describe a parameter by its index
Parameter shape_parameter(const Shape *s, int i)
{
	size_t C = s->d_model, V = s->vocab;
	int last = shape_nparameters(s) - 1;
	assert(i >= 0 && i <= last);
	Parameter p = { "token_embeddings.weight", V, C, 0, V * C, false };
	if (i == 0)
		return p;
	if (i < last - 1)
		return block_parameter(s, (i - 1) / NBLOCK, (i - 1) % NBLOCK);
	size_t offset = shape_unit(s, shape_nunits(s) - 1).offset;
	p = (Parameter){ "ln_final.weight", 1, C, offset, C, true };
	if (i == last)
		p = (Parameter){ "lm_head.weight", V, C, offset + C, V * C, false };
	return p;
}

// count the FLOPs of a forward pass
double forward_flops(const Shape *s, size_t B, size_t T)
{
	double N = (double)B * T, C = s->d_model, F = s->d_ff, L = s->layers,
		A = s->heads * s->d_head, V = s->vocab;
	return 2 * N * (L * (4 * A * C + 3 * C * F) + V * C) + 4 * N * T * A * L;
}
