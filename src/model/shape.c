#include "model/shape.h"

#include <assert.h>
#include <stdio.h>

const NamedShape model_sizes[NSIZES] = {
	/*            vocab  context  d_model  d_ff  layers heads theta */
	{ "small",  { 10000, 512,      768,    3072, 12,    12,   10000 } },
	{ "medium", { 10000, 512,     1024,    4096, 24,    16,   10000 } },
	{ "large",  { 10000, 512,     1280,    5120, 36,    20,   10000 } },
	{ "xl",     { 10000, 512,     1600,    6400, 48,    25,   10000 } },
	{ "2.7B",   { 10000, 512,     2560,   10240, 32,    32,   10000 } },
	{ "10B",    { 10000, 512,     4608,   12288, 50,    36,   10000 } },
};

const char *shape_error(const Shape *s)
{
	if (s->vocab < 1 || s->context < 1 || s->d_model < 1 || s->d_ff < 1
		|| s->layers < 1 || s->heads < 1)
		return "every dimension is at least 1";
	if (s->d_model % s->heads != 0)
		return "d_model is a multiple of the number of heads";
	if (s->d_model / s->heads % 2 != 0)
		return "d_model / heads is even, since rotary embeddings turn pairs";
	return NULL;
}

int shape_nparameters(const Shape *s)
{
	return 1 + (int)s->layers * NBLOCK + 2;
}

int shape_block_parameter(const Shape *s, int layer, BlockParameter which)
{
	assert(layer >= 0 && layer < s->layers && which < NBLOCK);
	(void)s;
	return 1 + layer * NBLOCK + (int)which;
}

size_t shape_count(const Shape *s)
{
	Parameter last = shape_parameter(s, shape_nparameters(s) - 1);
	return last.offset + last.count;
}

static Parameter block_parameter(const Shape *s, int layer, int which)
{
	size_t C = s->d_model, F = s->d_ff;
	const struct { const char *name; size_t rows, columns; } block[NBLOCK] = {
		[P_LN1] = { "ln1", 1, C },
		[P_Q] = { "attn.q_proj", C, C },
		[P_K] = { "attn.k_proj", C, C },
		[P_V] = { "attn.v_proj", C, C },
		[P_OUTPUT] = { "attn.output_proj", C, C },
		[P_LN2] = { "ln2", 1, C },
		[P_W1] = { "ffn.w1", F, C },
		[P_W3] = { "ffn.w3", F, C },
		[P_W2] = { "ffn.w2", C, F },
	};
	size_t offset = s->vocab * C, block_count = 4 * C * C + 3 * C * F + 2 * C;
	Parameter p = { .rows = block[which].rows, .columns = block[which].columns,
		.offset = offset + layer * block_count,
		.gain = which == P_LN1 || which == P_LN2 };
	for (int i = 0; i < which; i++)
		p.offset += block[i].rows * block[i].columns;
	p.count = p.rows * p.columns;
	snprintf(p.name, sizeof p.name, "layers.%d.%s.weight", layer,
		block[which].name);
	return p;
}

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
	Parameter before = block_parameter(s, (int)s->layers - 1, NBLOCK - 1);
	p = (Parameter){ "ln_final.weight", 1, C, before.offset + before.count, C,
		true };
	if (i == last)
		p = (Parameter){ "lm_head.weight", V, C, p.offset + C, V * C, false };
	return p;
}
double forward_flops(const Shape *s, size_t B, size_t T)
{
	double N = (double)B * T, C = s->d_model, F = s->d_ff, L = s->layers,
		V = s->vocab;
	return 2 * N * (L * (4 * C * C + 3 * C * F) + V * C) + 4 * N * T * C * L;
}
