#include "model/internal.h"

#include <assert.h>

Array array_new(Model *m, size_t n, Type type, Category category,
	const char *what)
{
	return (Array){ device_alloc(m->device, n * sizeof(real), category, what),
		type };
}

Array temporary(Model *m, size_t n, Type type, const char *what)
{
	return array_new(m, n, type, MEM_TEMPORARY, what);
}

Array activation(Model *m, size_t n, OpKind kind, const char *what)
{
	return array_new(m, n, m->policy->op[kind].output, MEM_ACTIVATION, what);
}

void array_drop(Model *m, Array *a)
{
	device_free(m->device, a->at);
	a->at = NULL;
}

Array take_as(Model *m, Array x, size_t n, Type type)
{
	if (x.type == type)
		return x;
	Array copy = temporary(m, n, type, "cast");
	m->ops->cast(copy, x, n);
	return copy;
}

void give_back(Model *m, Array *copy, Array x)
{
	if (copy->at != x.at)
		array_drop(m, copy);
}

void linear_forward(Model *m, Array Y, Array X, int parameter, size_t N)
{
	Parameter p = shape_parameter(&m->shape, parameter);
	Type type = m->policy->op[OP_LINEAR].input;
	Array weight = model_weight(m, parameter);
	Array x = take_as(m, X, N * p.columns, type);
	Array w = take_as(m, weight, p.count, type);
	m->ops->matmul(Y, x, w, (Matmul){
		.m = N, .n = p.rows, .k = p.columns, .trans_b = true,
		.lda = p.columns, .ldb = p.columns, .ldc = p.rows, .alpha = 1,
	});
	give_back(m, &w, weight);
	give_back(m, &x, X);
}
void linear_backward(Model *m, Array dX, double beta, Array dY, Array X,
	int parameter, double beta_w, size_t N)
{
	Parameter p = shape_parameter(&m->shape, parameter);
	Type type = m->policy->op[OP_LINEAR].input;
	Array weight = model_weight(m, parameter);
	Array dy = take_as(m, dY, N * p.rows, type);
	Array w = take_as(m, weight, p.count, type);
	m->ops->matmul(dX, dy, w, (Matmul){
		.m = N, .n = p.columns, .k = p.rows,
		.lda = p.rows, .ldb = p.columns, .ldc = p.columns,
		.alpha = 1, .beta = beta,
	});
	give_back(m, &w, weight);
	Array x = take_as(m, X, N * p.columns, type);
	m->ops->matmul(model_gradient(m, parameter), dy, x, (Matmul){
		.m = p.rows, .n = p.columns, .k = N, .trans_a = true,
		.lda = p.rows, .ldb = p.columns, .ldc = p.columns,
		.alpha = 1, .beta = beta_w,
	});
	give_back(m, &x, X);
	give_back(m, &dy, dY);
}
