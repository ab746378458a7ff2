#include "model/linear.h"

#include "model/buffers.h"
#include "model/fp8.h"

// take the weights of a span of parameters
typedef struct CastWeights {
	size_t rows, columns;
	Array w;
} CastWeights;

static CastWeights cast_weights(Model *m, ParamSpan W)
{
	Param *p = &m->params[W.first];
	Type type = m->policy->op[OP_LINEAR].input;
	CastWeights taken = { p->about.rows * W.count, p->about.columns, p->compute };
	if (taken.w.at)
		return taken;
	bool reads = m->ops->reads(m->device, p->weight.type, type);
	if (!reads && p->cast.at == NULL)
		p->cast = cast_if_needed(m, p->weight, p->about.count * W.count, type);
	taken.w = reads ? (Array){ p->weight.at, type } : p->cast;
	return taken;
}

void linear_drop_casts(Model *m, int first, int count)
{
	for (int i = first; i < first + count; i++)
		array_drop(m, &m->params[i].cast);
}

static void release_weights(Model *m, ParamSpan W)
{
	if (m->weights.at == NULL)
		linear_drop_casts(m, W.first, 1);
}

// apply a linear layer
void linear_forward(Model *m, Array Y, Array X, ParamSpan W, size_t N)
{
	size_t columns = m->params[W.first].about.columns;
	Array x = cast_if_needed(m, X, N * columns, m->policy->op[OP_LINEAR].input);
	CastWeights p = cast_weights(m, W);
	if (fp8_multiplies(m, W))
		fp8_forward(m, Y, (Fp8Input){ x }, p.w, W, N);
	else RANGE(m->device, "linear")
		m->ops->matmul(m->device, Y, x, p.w, (Matmul){
			.m = N, .n = p.rows, .k = p.columns, .trans_b = true,
			.lda = p.columns, .ldb = p.columns, .ldc = p.rows, .alpha = 1,
		});
	release_weights(m, W);
	release_cast(m, &x, X);
}

// propagate gradients through a linear layer
void linear_backward_input(Model *m, Array dX, double beta, Array dY,
	ParamSpan W, size_t N)
{
	size_t rows = m->params[W.first].about.rows * W.count;
	Array dy = cast_if_needed(m, dY, N * rows, m->policy->op[OP_LINEAR].input);
	if (fp8_multiplies(m, W)) {
		fp8_backward_input(m, dX, beta, (Fp8Input){ dy }, W, N);
		release_cast(m, &dy, dY);
		return;
	}
	CastWeights p = cast_weights(m, W);
	RANGE(m->device, "linear")
		m->ops->matmul(m->device, dX, dy, p.w, (Matmul){
			.m = N, .n = p.columns, .k = p.rows,
			.lda = p.rows, .ldb = p.columns, .ldc = p.columns,
			.alpha = 1, .beta = beta,
		});
	release_weights(m, W);
	release_cast(m, &dy, dY);
}

void linear_weight_gradient(Model *m, Array dW, Array dY, Array X, ParamSpan W,
	double beta, size_t N)
{
	const Parameter *p = &m->params[W.first].about;
	size_t rows = p->rows * W.count;
	Type type = m->policy->op[OP_LINEAR].input;
	Array dy = cast_if_needed(m, dY, N * rows, type);
	Array x = cast_if_needed(m, X, N * p->columns, type);
	if (fp8_multiplies(m, W))
		fp8_weight_gradient(m, dW, (Fp8Input){ dy }, (Fp8Input){ x }, W, beta, N);
	else RANGE(m->device, "linear")
		m->ops->matmul(m->device, dW, dy, x, (Matmul){
			.m = rows, .n = p->columns, .k = N, .trans_a = true,
			.lda = rows, .ldb = p->columns, .ldc = p->columns,
			.alpha = 1, .beta = beta,
		});
	release_cast(m, &x, X);
	release_cast(m, &dy, dY);
}

void linear_backward_weight(Model *m, Array dY, Array X, ParamSpan W,
	double beta, size_t N)
{
	linear_weight_gradient(m, model_gradient(m, W.first), dY, X, W, beta, N);
	announce_gradients(m, W.first, W.count);
}
