#include "model/toy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/random.h"
#include "ops/array.h"

// say how large each tensor is
const char *const toy_names[NTOY] = { CHOICE_NAMES(TOY_TENSORS_OF) };

// say how large each tensor is from its name
size_t toy_count(const Toy *t, ToyTensor which)
{
	switch (which) {
	case TOY_X:                            return t->N * t->in;
	case TOY_FC1_W: case TOY_DFC1_W:       return t->hidden * t->in;
	case TOY_FC2_W: case TOY_DFC2_W:       return t->classes * t->hidden;
	case TOY_LOGITS: case TOY_DLOGITS:     return t->N * t->classes;
	case TOY_GAIN: case TOY_SHIFT:
	case TOY_DGAIN: case TOY_DSHIFT:       return t->hidden;
	case TOY_LOSS:                         return t->N;
	default:                               return t->N * t->hidden;
	}
}

// ask the policy for the type of each tensor
static Type type_of(const Policy *p, ToyTensor which)
{
	switch (which) {
	case TOY_X:                            return TYPE_REAL;
	case TOY_FC1_W: case TOY_GAIN:
	case TOY_SHIFT: case TOY_FC2_W:        return p->parameter;
	case TOY_DFC2_W: case TOY_DGAIN:
	case TOY_DSHIFT: case TOY_DFC1_W:      return p->gradient;
	case TOY_RELU: case TOY_DRELU:         return p->op[OP_RELU].output;
	case TOY_LN: case TOY_DLN:             return p->op[OP_LAYERNORM].output;
	case TOY_LOSS:                         return p->op[OP_LOSS].output;
	default:                               return p->op[OP_LINEAR].output;
	}
}

// allocate and draw a tensor
static void draw(Toy *t, ToyTensor which, double mean, double deviation,
                 uint64_t seed)
{
	size_t n = toy_count(t, which);
	real *x = need(malloc(n * sizeof *x));
	for (size_t i = 0; i < n; i++)
		x[i] = (real)(mean + deviation * random_normal(seed, which, i));
	array_write(t->device, t->tensor[which], x, n);
	free(x);
}

static Array new_tensor(Toy *t, size_t n, Type type, const char *name)
{
	Array a = array_new(t->device, n, type, MEM_ACTIVATION, name);
	t->ops->fill(t->device, a, 0, n);
	return a;
}

// build and free a toy model
Toy *toy_new(Device *device, const Policy *policy, uint64_t seed)
{
	Toy *t = need(calloc(1, sizeof *t));
	*t = (Toy){ .N = 32, .in = 20, .hidden = 10, .classes = 5,
	            .policy = policy, .device = device, .ops = ops_for(device) };
	for (int i = 0; i < NTOY; i++)
		t->tensor[i] = new_tensor(t, toy_count(t, i), type_of(policy, i),
		                          toy_names[i]);
	t->mean = new_tensor(t, t->N, TYPE_REAL, "mean");
	t->rstd = new_tensor(t, t->N, TYPE_REAL, "rstd");
	t->lse = new_tensor(t, t->N, TYPE_REAL, "logsumexp");
	t->loss = new_tensor(t, 1, TYPE_REAL, "mean loss");
	t->nonfinite = device_alloc(device, sizeof *t->nonfinite, MEM_ACTIVATION,
	                            "nonfinite");
	size_t nbytes = t->N * sizeof *t->targets;
	t->targets = device_alloc(device, nbytes, MEM_ACTIVATION, "targets");
	int32_t targets[t->N];
	for (size_t i = 0; i < t->N; i++)
		targets[i] = (int32_t)(random_bits(seed, NTOY, i) % t->classes);
	device_upload(device, t->targets, targets, nbytes);
	draw(t, TOY_X, 0, 1, seed);
	draw(t, TOY_FC1_W, 0, sqrt(2.0 / (t->in + t->hidden)), seed);
	draw(t, TOY_GAIN, 1, 0.1, seed);
	draw(t, TOY_SHIFT, 0, 0.1, seed);
	draw(t, TOY_FC2_W, 0, sqrt(2.0 / (t->hidden + t->classes)), seed);
	return t;
}

// free a toy model
void toy_free(Toy **toy)
{
	Toy *t = *toy;
	for (int i = 0; i < NTOY; i++)
		device_free(t->device, t->tensor[i].at);
	device_free(t->device, t->mean.at);
	device_free(t->device, t->rstd.at);
	device_free(t->device, t->lse.at);
	device_free(t->device, t->loss.at);
	device_free(t->device, t->nonfinite);
	device_free(t->device, t->targets);
	free(t);
	*toy = NULL;
}

// multiply matrices in the format of linear layers
static Array as_type(Toy *t, Array x, size_t n, Type type)
{
	if (t->ops->reads(t->device, x.type, type))
		return (Array){ x.at, type };
	Array copy = new_tensor(t, n, type, "cast");
	t->ops->cast(t->device, copy, x, n);
	return copy;
}

static void drop_copy(Toy *t, Array copy, Array x)
{
	if (copy.at != x.at)
		device_free(t->device, copy.at);
}

static void toy_matmul(Toy *t, ToyTensor C, ToyTensor A, ToyTensor B,
	Matmul shape)
{
	Type type = t->policy->op[OP_LINEAR].input;
	Array a = as_type(t, t->tensor[A], toy_count(t, A), type);
	Array b = as_type(t, t->tensor[B], toy_count(t, B), type);
	shape.alpha = 1;
	t->ops->matmul(t->device, t->tensor[C], a, b, shape);
	drop_copy(t, a, t->tensor[A]);
	drop_copy(t, b, t->tensor[B]);
}

// run the toy model forward
double toy_forward(Toy *t)
{
	Array *a = t->tensor;
	size_t N = t->N, in = t->in, H = t->hidden, K = t->classes;
	toy_matmul(t, TOY_FC1, TOY_X, TOY_FC1_W, (Matmul){ .m = N, .n = H, .k = in,
	        .trans_b = true, .lda = in, .ldb = in, .ldc = H });
	t->ops->relu_forward(t->device, a[TOY_RELU], a[TOY_FC1], N * H);
	Array x = as_type(t, a[TOY_RELU], N * H, t->policy->op[OP_LAYERNORM].input);
	t->ops->layernorm_forward(t->device, a[TOY_LN], t->mean, t->rstd, x,
		a[TOY_GAIN], a[TOY_SHIFT], N, H, 1e-5);
	drop_copy(t, x, a[TOY_RELU]);
	toy_matmul(t, TOY_LOGITS, TOY_LN, TOY_FC2_W,
		(Matmul){ .m = N, .n = K, .k = H,
	        .trans_b = true, .lda = H, .ldb = H, .ldc = K });
	Array z = as_type(t, a[TOY_LOGITS], N * K, t->policy->op[OP_LOSS].input);
	t->ops->cross_entropy_forward(t->device, a[TOY_LOSS], t->lse, z, t->targets,
		N, K);
	drop_copy(t, z, a[TOY_LOGITS]);
	t->ops->mean(t->device, t->loss, t->nonfinite, a[TOY_LOSS], N);
	real loss;
	array_read(t->device, &loss, t->loss, 1);
	return loss;
}

// run the toy model backward
void toy_backward(Toy *t)
{
	Array *a = t->tensor;
	size_t N = t->N, in = t->in, H = t->hidden, K = t->classes;
	for (int i = TOY_DLOGITS; i < NTOY; i++)
		t->ops->fill(t->device, a[i], 0, toy_count(t, i));
	t->ops->cross_entropy_backward(t->device, a[TOY_DLOGITS], a[TOY_LOGITS],
		t->lse, t->targets, 1.0 / N, N, K);
	toy_matmul(t, TOY_DFC2_W, TOY_DLOGITS, TOY_LN, (Matmul){ .m = K, .n = H,
	        .k = N, .trans_a = true, .lda = K, .ldb = H, .ldc = H });
	toy_matmul(t, TOY_DLN, TOY_DLOGITS, TOY_FC2_W, (Matmul){ .m = N, .n = H,
	        .k = K, .lda = K, .ldb = H, .ldc = H });
	t->ops->layernorm_backward(t->device, a[TOY_DRELU], a[TOY_DGAIN],
		a[TOY_DSHIFT], a[TOY_DLN], a[TOY_RELU], a[TOY_GAIN], t->mean, t->rstd, N,
		H);
	t->ops->relu_backward(t->device, a[TOY_DFC1], a[TOY_DRELU], a[TOY_FC1],
		N * H);
	toy_matmul(t, TOY_DFC1_W, TOY_DFC1, TOY_X,
		(Matmul){ .m = H, .n = in, .k = N,
	        .trans_a = true, .lda = H, .ldb = in, .ldc = in });
}
