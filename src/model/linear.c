#include "model/internal.h"

#include <assert.h>

Array temporary(Model *m, size_t n, Type type, const char *what)
{
	return array_new(m->device, n, type, MEM_TEMPORARY, what);
}

Array activation(Model *m, size_t n, OpKind kind, const char *what)
{
	return array_new(m->device, n, m->policy->op[kind].output, MEM_ACTIVATION,
		what);
}

void array_drop(Model *m, Array *a)
{
	device_free(m->device, a->at);
	a->at = NULL;
}

Array take_as(Model *m, Array x, size_t n, Type type)
{
	if (m->ops->reads(m->device, x.type, type))
		return (Array){ x.at, type };
	Array copy = temporary(m, n, type, "cast");
	m->ops->cast(m->device, copy, x, n);
	return copy;
}

void give_back(Model *m, Array *copy, Array x)
{
	if (copy->at != x.at)
		array_drop(m, copy);
}

static Parameter parameter_of(const Model *m, ParamSpan W)
{
	Parameter p = shape_parameter(&m->shape, W.first);
	p.rows *= W.count, p.count *= W.count;
	return p;
}

static Array take_weights(Model *m, const Parameter *p)
{
	if (m->fused)
		return array_part(m->device, m->compute_weights, p->offset);
	Array master = array_part(m->device, m->weights, p->offset);
	return take_as(m, master, p->count, m->policy->op[OP_LINEAR].input);
}

static void return_weights(Model *m, const Parameter *p, Array *w)
{
	if (!m->fused)
		give_back(m, w, array_part(m->device, m->weights, p->offset));
}
void linear_forward(Model *m, Array Y, Array X, ParamSpan W, size_t N)
{
	Parameter p = parameter_of(m, W);
	Array x = take_as(m, X, N * p.columns, m->policy->op[OP_LINEAR].input);
	Array w = take_weights(m, &p);
	m->ops->matmul(m->device, Y, x, w, (Matmul){
		.m = N, .n = p.rows, .k = p.columns, .trans_b = true,
		.lda = p.columns, .ldb = p.columns, .ldc = p.rows, .alpha = 1,
	});
	return_weights(m, &p, &w);
	give_back(m, &x, X);
}
void linear_backward_input(Model *m, Array dX, double beta, Array dY,
	ParamSpan W, size_t N)
{
	Parameter p = parameter_of(m, W);
	Array dy = take_as(m, dY, N * p.rows, m->policy->op[OP_LINEAR].input);
	Array w = take_weights(m, &p);
	m->ops->matmul(m->device, dX, dy, w, (Matmul){
		.m = N, .n = p.columns, .k = p.rows,
		.lda = p.rows, .ldb = p.columns, .ldc = p.columns,
		.alpha = 1, .beta = beta,
	});
	return_weights(m, &p, &w);
	give_back(m, &dy, dY);
}

void linear_backward_weight(Model *m, Array dY, Array X, ParamSpan W,
	double beta, size_t N)
{
	Parameter p = parameter_of(m, W);
	Type type = m->policy->op[OP_LINEAR].input;
	Array dy = take_as(m, dY, N * p.rows, type);
	Array x = take_as(m, X, N * p.columns, type);
	m->ops->matmul(m->device, model_gradient(m, W.first), dy, x, (Matmul){
		.m = p.rows, .n = p.columns, .k = N, .trans_a = true,
		.lda = p.rows, .ldb = p.columns, .ldc = p.columns,
		.alpha = 1, .beta = beta,
	});
	give_back(m, &x, X);
	give_back(m, &dy, dY);
}
void attention_matmul(Model *m, Array C, Array A, size_t nA, Array B,
	size_t nB, Matmul shape)
{
	Type type = m->policy->op[OP_SCORES].input;
	Array a = take_as(m, A, nA, type), b = take_as(m, B, nB, type);
	m->ops->matmul(m->device, C, a, b, shape);
	give_back(m, &b, B);
	give_back(m, &a, A);
}
