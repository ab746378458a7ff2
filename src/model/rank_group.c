#include "model/rank_group.h"

// refuse models that a group cannot have
void group_collective(const RankGroup *g, GroupOp op)
{
	g->start(g->self, &op, SLOT_NOW);
	g->join(g->self, SLOT_NOW);
}

const char *group_error(const Shape *s, const Policy *policy, int ranks)
{
	if (policy->op[OP_LINEAR].output == FP16)
		return "sums over ranks are not formed in fp16";
	if (s->heads < ranks)
		return "there are fewer heads than ranks";
	if (s->d_ff < ranks || s->vocab < ranks)
		return "d_ff or the vocabulary is smaller than the number of ranks";
	return NULL;
}

// find the shape of a rank's part
size_t group_begin(long n, int rank, int ranks)
{
	return (size_t)n * rank / ranks;
}

static size_t own_begin(long n, const RankGroup *g)
{
	return group_begin(n, g->rank, g->ranks);
}

static long own_count(long n, const RankGroup *g)
{
	return (long)(group_begin(n, g->rank + 1, g->ranks) - own_begin(n, g));
}

Shape group_shape(const Shape *whole, const RankGroup *g)
{
	Shape s = *whole;
	if (g) {
		s.heads = own_count(whole->heads, g);
		s.d_ff = own_count(whole->d_ff, g);
		s.vocab = own_count(whole->vocab, g);
	}
	return s;
}

// find a slice
static size_t slice_begin(const Shape *whole, const RankGroup *g, int i)
{
	int last = shape_nparameters(whole) - 1;
	if (i == 0 || i == last)
		return own_begin(whole->vocab, g);
	switch ((i - 1) % NBLOCK) {
	case P_Q: case P_K: case P_V: case P_OUTPUT:
		return own_begin(whole->heads, g) * whole->d_head;
	default:
		return own_begin(whole->d_ff, g);
	}
}

ParameterSlice group_slice(const Shape *whole, const RankGroup *g, int i)
{
	Shape own = group_shape(whole, g);
	Parameter p = shape_parameter(&own, i), all = shape_parameter(whole, i);
	ParameterSlice s = { 0, 0, p.rows, p.columns, all.rows, all.columns };
	if (g && !p.gain && s.columns < s.whole_columns)
		s.column = slice_begin(whole, g, i);
	else if (g && !p.gain && s.rows < s.whole_rows)
		s.row = slice_begin(whole, g, i);
	return s;
}
