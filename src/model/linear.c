#include "model/linear.h"

#include "model/buffers.h"
#include "model/fp8.h"

// take the weights of a span of parameters
typedef struct CastWeights {
	size_t rows, columns, count;
	Array master, w;
} CastWeights;

static CastWeights cast_weights(Model *m, ParamSpan W)
{
	const Param *p = &m->params[W.first];
	CastWeights taken = { p->about.rows * W.count, p->about.columns,
		p->about.count * W.count, p->weight, p->compute };
	if (taken.w.at == NULL)
		taken.w = cast_if_needed(m, p->weight, taken.count,
			m->policy->op[OP_LINEAR].input);
	return taken;
}

static void release_weights(Model *m, ParamSpan W, CastWeights *taken)
{
	if (m->params[W.first].compute.at == NULL)
		release_cast(m, &taken->w, taken->master);
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
	release_weights(m, W, &p);
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
	release_weights(m, W, &p);
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

// multiply under the policy of attention
void attention_matmul(Model *m, Array C, Array A, size_t nA, Array B,
	size_t nB, Matmul shape)
{
	Type type = m->policy->op[OP_SCORES].input;
	Array a = cast_if_needed(m, A, nA, type), b = cast_if_needed(m, B, nB,
		type);
	m->ops->matmul(m->device, C, a, b, shape);
	release_cast(m, &b, B);
	release_cast(m, &a, A);
}
