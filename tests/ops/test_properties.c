/* threads, rounding, NaNs, aliasing: the operations of a table; matmuls and
 * attention have tests of their own */
#include "tests/ops/compare.h"

#include <omp.h>

enum { B = 3, T = 7, H = 5, D = 26, C = H * D, N = B * T, V = 65 };
enum { NC = N * C, ANGLES = T * D / 2, MATRICES = B * H };
enum { SQUARES = MATRICES * T * T };

static Device *device;
static const Ops *ops;
static const int32_t *tokens;           /* N, the first 0, the last V - 1 */

// call each operation on lists of arrays
#define CALL(name, ...)                                 \
	static void name(const Array *y, const Array *x)    \
	{                                                   \
		(void)x;                                        \
		ops->__VA_ARGS__;                               \
	}

static const AdamWStep step = { 0.999, 0.1, 0.9, 0.999, 0.1, 0.001, 1e-8, 1 };
static const int32_t never;

CALL(fill, fill(device, y[0], 0.1, NC))
CALL(cast, cast(device, y[0], x[0], NC))
CALL(add, add(device, y[0], x[0], x[1], NC))
CALL(relu, relu_forward(device, y[0], x[0], NC))
CALL(relu_back, relu_backward(device, y[0], x[0], x[1], NC))
CALL(embed, embedding_forward(device, y[0], x[0], tokens, N, C))
CALL(embed_back, embedding_backward(device, y[0], 1, x[0], tokens, N, C, V))
CALL(rms, rmsnorm_forward(device, y[0], y[1], x[0], x[1], N, C, 1e-5))
CALL(rms_back,
	rmsnorm_backward(device, y[0], y[1], x[0], x[1], x[2], x[3], N, C))
CALL(layer,
	layernorm_forward(device, y[0], y[1], y[2], x[0], x[1], x[2], N, C, 1e-5))
CALL(layer_back,
	layernorm_backward(device, y[0], y[1], y[2], x[0], x[1], x[2], x[3], x[4], N,
	C))
CALL(rotate, rope(device, y[0], x[0], x[1], x[2], B, T, H, D, 1))
CALL(rotate_back, rope(device, y[0], x[0], x[1], x[2], B, T, H, D, -1))
CALL(softmax, softmax_forward(device, y[0], x[0], 0.7, MATRICES, T))
CALL(softmax_back, softmax_backward(device, y[0], x[0], x[1], 0.7, MATRICES, T))
CALL(swiglu, swiglu_forward(device, y[0], x[0], x[1], NC))
CALL(swiglu_back, swiglu_backward(device, y[0], y[1], x[0], x[1], x[2], NC))
CALL(loss, cross_entropy_forward(device, y[0], y[1], x[0], tokens, N, V))
CALL(loss_back,
	cross_entropy_backward(device, y[0], x[0], x[1], tokens, 1.0 / N, N, V))
CALL(adamw, adamw(device, y[0], (Array){ NULL, FP32 }, x[0], y[1], y[2], NC,
	&step, &never))

CALL(norm, fused_rmsnorm_forward(device, (NormForward){ .y = y[0], .rho = y[1],
	.sum = y[2], .x = x[0], .branch = x[1], .g = x[2], .eps = 1e-5 }, N, C))
CALL(norm_back, fused_rmsnorm_backward(device, (NormBackward){ .dsum = y[2],
	.dg = y[1], .beta = 1, .y = y[0], .dy = x[0], .sum = x[1], .g = x[2],
	.rho = x[3] }, N, C))
CALL(rotate_both, fused_rope(device, y[0], x[0], x[1], B, T, H, D, 1))
CALL(gated, fused_swiglu_forward(device, y[0], x[0], N, C))
CALL(gated_back, fused_swiglu_backward(device, y[0], y[1], x[0], x[1], N, C))
CALL(both, fused_cross_entropy(device, y[1], y[0], x[0], tokens, 1.0 / N, N, V))
static Gradients both_of(const Array *x)
{
	return (Gradients){ 2, { x[0], x[1] } };
}

CALL(adamw_low, fused_adamw(device, y[1], y[0], one_gradient(x[0]), y[2], y[3],
	NC, &step, NULL))
CALL(adamw_sum, fused_adamw(device, y[1], y[0], both_of(x), y[2], y[3], NC, &step,
	NULL))
static const SgdStep sgd_step = { 0.1, 0.9, 0.5 };
CALL(sgd_low, sgd(device, y[1], y[0], one_gradient(x[0]), y[2], NC, &sgd_step,
	&never))
CALL(sgd_sum, sgd(device, y[1], y[0], both_of(x), y[2], NC, &sgd_step, &never))

// list the operations
static const struct OperationCase {
	const char *name;
	void (*run)(const Array *outputs, const Array *inputs);
	size_t in[5], out[4];           /* elements of each; 0 ends the list */
	int nrounded;                   /* outputs that are rounded to their type */
	bool adds;                      /* to what the outputs hold */
} cases[] = {
	// describe each operation's arrays
	{ "fill", fill, { 0 }, { NC }, 1, false },
	{ "cast", cast, { NC }, { NC }, 1, false },
	{ "add", add, { NC, NC }, { NC }, 1, false },
	{ "relu", relu, { NC }, { NC }, 1, false },
	{ "relu backward", relu_back, { NC, NC }, { NC }, 1, false },
	{ "embedding", embed, { V * C }, { NC }, 1, false },
	{ "embedding backward", embed_back, { NC }, { V * C }, 1, true },
	{ "rmsnorm", rms, { NC, C }, { NC, N }, 1, false },
	{ "rmsnorm backward", rms_back, { NC, NC, C, N }, { NC, C }, 2, true },
	{ "layernorm", layer, { NC, C, C }, { NC, N, N }, 1, false },
	{ "layernorm backward", layer_back, { NC, NC, C, N, N }, { NC, C, C }, 3,
		true },
	{ "rope", rotate, { NC, ANGLES, ANGLES }, { NC }, 1, false },
	{ "rope backward", rotate_back, { NC, ANGLES, ANGLES }, { NC }, 1, false },
	{ "softmax", softmax, { SQUARES }, { SQUARES }, 1, false },
	{ "softmax backward", softmax_back, { SQUARES, SQUARES }, { SQUARES }, 1,
		false },
	{ "swiglu", swiglu, { NC, NC }, { NC }, 1, false },
	{ "swiglu backward", swiglu_back, { NC, NC, NC }, { NC, NC }, 2, false },
	{ "cross-entropy", loss, { N * V }, { N, N }, 0, false },
	{ "cross-entropy backward", loss_back, { N * V, N }, { N * V }, 1, false },
	{ "adamw", adamw, { NC }, { NC, NC, NC }, 0, true },
	{ "add and norm", norm, { NC, NC, C }, { NC, N, NC }, 1, false },
	{ "add and norm backward", norm_back, { NC, NC, C, N }, { NC, C, NC }, 2,
		true },
	{ "rotate both", rotate_both, { ANGLES, ANGLES }, { 3 * NC }, 0, true },
	{ "gate beside up", gated, { 2 * NC }, { NC }, 1, false },
	{ "gate beside up backward", gated_back, { NC, 2 * NC }, { 2 * NC, NC }, 2,
		false },
	{ "loss and gradient", both, { N * V }, { N * V, N }, 1, false },
	{ "adamw with a copy", adamw_low, { NC }, { NC, NC, NC, NC }, 1, true },
	{ "adamw of a sum", adamw_sum, { NC, NC }, { NC, NC, NC, NC }, 1, true },
	{ "sgd with a copy", sgd_low, { NC }, { NC, NC, NC }, 1, true },
	{ "sgd of a sum", sgd_sum, { NC, NC }, { NC, NC, NC }, 1, true },
};
enum { NCASES = sizeof cases / sizeof *cases };

// prepare an operation's arrays and run it
typedef struct CaseArrays {
	Array in[5], out[4];
} CaseArrays;

static CaseArrays prepare(const struct OperationCase *c)
{
	CaseArrays a = { 0 };
	for (int k = 0; k < 5 && c->in[k]; k++)
		a.in[k] = drawn(c->in[k], 10 + k, 0.5, 1);
	for (int k = 0; k < 4 && c->out[k]; k++)
		a.out[k] = c->adds ? drawn(c->out[k], 20 + k, 4, 1)
			: poisoned(c->out[k]);
	return a;
}

static CaseArrays run(const struct OperationCase *c)
{
	CaseArrays a = prepare(c);
	c->run(a.out, a.in);
	return a;
}

// test that the number of threads changes no bit
static void threads_change_nothing(void **state)
{
	int before = omp_get_max_threads();
	for (int i = 0; i < NCASES; i++) {
		const struct OperationCase *c = &cases[i];
		omp_set_num_threads(1);
		CaseArrays one = run(c);
		for (int threads = 2; threads <= 3; threads++) {
			omp_set_num_threads(threads);
			CaseArrays many = run(c);
			for (int k = 0; k < 4 && c->out[k]; k++)
				expect_same(c->name, many.out[k], one.out[k], c->out[k]);
		}
	}
	omp_set_num_threads(before);
}

static void threads_change_no_mean(void **state)
{
	int before = omp_get_max_threads();
	double mean[4];
	Array x = drawn(NC, 1, 0, 1);
	for (int i = 0; i < NC; i++)
		reals(x)[i] *= (real)ldexp(1, i % 100);
	for (int threads = 1; threads <= 3; threads++) {
		Array m = poisoned(1);
		int32_t nonfinite;
		omp_set_num_threads(threads);
		ops->mean(device, m, &nonfinite, x, NC);
		mean[threads] = reals(m)[0];
		assert_true(mean[threads] == mean[1]);
	}
	omp_set_num_threads(before);
}

// test that outputs are rounded to their type
static void outputs_are_rounded(void **state)
{
	for (int i = 0; i < NCASES; i++)
		for (Type type = BF16; type <= FP16; type++) {
			const struct OperationCase *c = &cases[i];
			CaseArrays wide = run(c), low = prepare(c);
			for (int k = 0; k < c->nrounded; k++)
				low.out[k].type = type;
			c->run(low.out, low.in);
			for (int k = 0; k < 4 && c->out[k]; k++) {
				real *x = wide.out[k].at;
				for (size_t j = 0; k < c->nrounded && j < c->out[k]; j++)
					x[j] = round_to(type, (float)x[j]);
				expect_same(c->name, low.out[k], wide.out[k], c->out[k]);
			}
		}
}

// test that NaNs come out
static bool shows_nan(const struct OperationCase *c, const CaseArrays *a)
{
	for (int k = 0; k < 4 && c->out[k]; k++)
		for (size_t j = 0; j < c->out[k]; j++)
			if (isnan(reals(a->out[k])[j]))
				return true;
	return false;
}

static void plant_nans(const struct OperationCase *c, int input)
{
	for (int end = 0; end < 2; end++) {
		CaseArrays a = prepare(c);
		reals(a.in[input])[end ? c->in[input] - 1 : 0] = (real)NAN;
		c->run(a.out, a.in);
		if (!shows_nan(c, &a))
			fail_msg("%s swallowed a NaN in the %s element of input %d",
				c->name, end ? "last" : "first", input);
	}
}

static void nans_come_out(void **state)
{
	for (int i = 0; i < NCASES; i++) {
		const struct OperationCase *c = &cases[i];
		CaseArrays clean = run(c);
		if (shows_nan(c, &clean))
			fail_msg("%s left part of an output unwritten", c->name);
		for (int k = 0; k < 5 && c->in[k] && c->run != relu_back; k++)
			plant_nans(c, k);
	}
}

// test that outputs may lie over inputs
static const struct Overlay {
	void (*run)(const Array *, const Array *);
	int out, in;                    /* which output lies over which input */
} overlays[] = {
	{ cast, 0, 0 }, { add, 0, 0 }, { add, 0, 1 }, { relu, 0, 0 },
	{ relu_back, 0, 0 }, { relu_back, 0, 1 }, { rotate, 0, 0 },
	{ rotate_back, 0, 0 }, { softmax, 0, 0 }, { softmax_back, 0, 0 },
	{ softmax_back, 0, 1 }, { swiglu, 0, 0 }, { swiglu, 0, 1 },
	{ swiglu_back, 0, 0 }, { swiglu_back, 0, 1 }, { swiglu_back, 0, 2 },
	{ swiglu_back, 1, 0 }, { swiglu_back, 1, 1 }, { swiglu_back, 1, 2 },
	{ loss_back, 0, 0 },
};

static void overlay(const struct OperationCase *c, const struct Overlay *o)
{
	CaseArrays apart = run(c), over = prepare(c);
	over.out[o->out] = over.in[o->in];
	c->run(over.out, over.in);
	char what[64];
	snprintf(what, sizeof what, "%s, output %d over input %d", c->name,
		o->out, o->in);
	for (int k = 0; k < 4 && c->out[k]; k++)
		expect_same(what, over.out[k], apart.out[k], c->out[k]);
}

static void outputs_may_lie_over_inputs(void **state)
{
	for (size_t i = 0; i < sizeof overlays / sizeof *overlays; i++)
		for (const struct OperationCase *c = cases; c < cases + NCASES; c++)
			if (c->run == overlays[i].run)
				overlay(c, &overlays[i]);
}

// open the device and draw the tokens
static int open_device(void **state)
{
	static int32_t list[N];
	device = device_open("cpu");
	ops = ops_for(device);
	for (int i = 0; i < N; i++)
		list[i] = (int32_t)(random_bits(1, 99, i) % V);
	list[0] = 0;
	list[N - 1] = V - 1;
	tokens = list;
	return 0;
}

static int close_device(void **state)
{
	device_close(&device);
	return 0;
}

TESTS_BETWEEN(open_device, close_device,
	checked(threads_change_nothing), checked(threads_change_no_mean),
	checked(outputs_are_rounded), checked(nans_come_out),
	checked(outputs_may_lie_over_inputs))
