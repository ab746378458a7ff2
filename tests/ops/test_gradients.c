/* every backward operation but FlashAttention and the fused ones against
 * differences of its forward one (f64) */
#include "tests/ops/on_cpu.h"

#include <omp.h>

#include "tests/base/difference.h"


// describe an operation and its gradients
typedef struct GradientProblem {
	const char *name;
	size_t size[4];                     /* the sizes that the operation takes */
	void (*forward)(const struct GradientProblem *);
	void (*backward)(const struct GradientProblem *);
	int ninputs;
	Array x[3], dx[3], before[3];       /* inputs, gradients, their start */
	size_t n[3];
	bool adds[3];
	Array y, dy;                        /* output, and its given gradient */
	size_t ny;
	Array kept[2];                      /* left by forward, or constants */
	const int32_t *tokens;
} GradientProblem;

static void add_input(GradientProblem *p, size_t n, bool adds)
{
	int k = p->ninputs++;
	p->n[k] = n;
	p->adds[k] = adds;
	p->x[k] = drawn(n, 10 + k, 0, 1.5);
	for (size_t i = 0; i < n; i++)
		reals(p->x[k])[i] += reals(p->x[k])[i] > 0 ? 0.25 : -0.25;
	p->before[k] = drawn(n, 20 + k, 0, 1);
	p->dx[k] = adds ? copied(p->before[k], n) : poisoned(n);
}

static void set_output(GradientProblem *p, size_t n)
{
	p->ny = n;
	p->y = poisoned(n);
	p->dy = drawn(n, 30, 0, 1);
}

// difference the loss at one element
static double loss(const GradientProblem *p, double *magnitude)
{
	memset(p->y.at, 0xff, p->ny * sizeof(real));
	p->forward(p);
	double sum = 0;
	*magnitude = 0;
	for (size_t i = 0; i < p->ny; i++) {
		double term = (double)reals(p->dy)[i] * reals(p->y)[i];
		sum += term;
		*magnitude += fabs(term);
	}
	return sum;
}

typedef struct LossAtPoint {
	const GradientProblem *problem;
	double magnitude;
} LossAtPoint;

static double loss_at_point(void *context)
{
	LossAtPoint *l = context;
	return loss(l->problem, &l->magnitude);
}

static Expected difference(const GradientProblem *p, real *x)
{
	LossAtPoint l = { p };
	double slope = slope_at(loss_at_point, &l, x, 0x1p-10);
	return (Expected){ slope, 0x1p-30 + 0x1p-36 * l.magnitude };
}

// check every gradient of a problem
static void check_gradient(const GradientProblem *p, int k)
{
	enum { SAMPLES = 100 };
	size_t n = p->n[k];
	char what[96];
	Expected *want = expected(n);
	for (size_t i = 0; i < n; i++)
		want[i] = n <= SAMPLES ? difference(p, &reals(p->x[k])[i])
			: (Expected){ 0, INFINITY };
	for (int s = 0; n > SAMPLES && s < SAMPLES; s++) {
		size_t i = random_bits(2, k, s) % n;
		want[i] = difference(p, &reals(p->x[k])[i]);
	}
	for (size_t i = 0; i < n && p->adds[k]; i++)
		reals(p->dx[k])[i] -= reals(p->before[k])[i];
	snprintf(what, sizeof what, "%s (%zu, %zu, %zu, %zu), input %d", p->name,
		p->size[0], p->size[1], p->size[2], p->size[3], k);
	expect_close(what, p->dx[k], want, n);
}

static void check_gradients(const GradientProblem *p)
{
	double magnitude;
	loss(p, &magnitude);
	p->backward(p);
	for (int k = 0; k < p->ninputs; k++)
		check_gradient(p, k);
}

// test the gradients of the layers
static const size_t triples[][3] = {
	{ 1, 1, 1 }, { 1, 7, 65 }, { 7, 65, 3 }, { 65, 7, 13 }, { 9, 130, 2 },
};
enum { NTRIPLES = sizeof triples / sizeof *triples };

static void embed(const GradientProblem *p)
{
	ops->embedding_forward(device, p->y, p->x[0], p->tokens, p->size[0],
		p->size[1]);
}

static void embed_back(const GradientProblem *p)
{
	ops->embedding_backward(device, p->dx[0], 1, p->dy, p->tokens, p->size[0],
		p->size[1], p->size[2]);
}

static void test_embedding(void **state)
{
	for (int i = 0; i < NTRIPLES; i++) {
		size_t N = triples[i][0], C = triples[i][1], V = triples[i][2];
		GradientProblem p = { "embedding", { N, C, V }, embed, embed_back };
		add_input(&p, V * C, true);
		set_output(&p, N * C);
		p.tokens = drawn_tokens(N, 3, V);
		check_gradients(&p);
	}
}

static void linear(const GradientProblem *p)
{
	size_t N = p->size[0], K = p->size[1], M = p->size[2];
	ops->matmul(device, p->y, p->x[0], p->x[1], (Matmul){ .m = N, .n = M, .k = K,
		.trans_b = true, .lda = K, .ldb = K, .ldc = M, .alpha = 1 });
}

static void linear_back(const GradientProblem *p)
{
	size_t N = p->size[0], K = p->size[1], M = p->size[2];
	ops->matmul(device, p->dx[0], p->dy, p->x[1], (Matmul){ .m = N, .n = K,
		.k = M, .lda = M, .ldb = K, .ldc = K, .alpha = 1 });
	ops->matmul(device, p->dx[1], p->dy, p->x[0], (Matmul){ .m = M, .n = K,
		.k = N, .trans_a = true, .lda = M, .ldb = K, .ldc = K, .alpha = 1,
		.beta = 1 });
}

static void test_linear(void **state)
{
	for (int i = 0; i < NTRIPLES; i++) {
		size_t N = triples[i][0], K = triples[i][1], M = triples[i][2];
		GradientProblem p = { "linear", { N, K, M }, linear, linear_back };
		add_input(&p, N * K, false);
		add_input(&p, M * K, true);
		set_output(&p, N * M);
		check_gradients(&p);
	}
}

#define EPSILON 1e-2
static const size_t row_shapes[][2] = {
	{ 1, 1 }, { 7, 1 }, { 1, 7 }, { 7, 65 }, { 65, 7 }, { 3, 130 },
};
enum { NROW_SHAPES = sizeof row_shapes / sizeof *row_shapes };

static void rmsnorm(const GradientProblem *p)
{
	ops->rmsnorm_forward(device, p->y, p->kept[0], p->x[0], p->x[1], p->size[0],
		p->size[1], EPSILON);
}

static void rmsnorm_back(const GradientProblem *p)
{
	ops->rmsnorm_backward(device, p->dx[0], p->dx[1], p->dy, p->x[0], p->x[1],
		p->kept[0], p->size[0], p->size[1]);
}

/* a norm keeps as many numbers of a row as it has parameters of a column */
static void check_norm(GradientProblem norm, int parameters)
{
	for (int i = 0; i < NROW_SHAPES; i++) {
		size_t rows = row_shapes[i][0], C = row_shapes[i][1];
		GradientProblem p = norm;
		p.size[0] = rows, p.size[1] = C;
		add_input(&p, rows * C, true);
		for (int k = 0; k < parameters; k++)
			add_input(&p, C, true);
		set_output(&p, rows * C);
		for (int k = 0; k < parameters; k++)
			p.kept[k] = poisoned(rows);
		check_gradients(&p);
	}
}

static void test_rmsnorm(void **state)
{
	check_norm((GradientProblem){ "rmsnorm", .forward = rmsnorm,
		.backward = rmsnorm_back }, 1);
}

static void layernorm(const GradientProblem *p)
{
	ops->layernorm_forward(device, p->y, p->kept[0], p->kept[1], p->x[0], p->x[1],
		p->x[2], p->size[0], p->size[1], EPSILON);
}

static void layernorm_back(const GradientProblem *p)
{
	ops->layernorm_backward(device, p->dx[0], p->dx[1], p->dx[2], p->dy, p->x[0],
		p->x[1], p->kept[0], p->kept[1], p->size[0], p->size[1]);
}

static void test_layernorm(void **state)
{
	check_norm((GradientProblem){ "layernorm", .forward = layernorm,
		.backward = layernorm_back }, 2);
}

// test the gradients of attention's parts
static void rotate(const GradientProblem *p)
{
	ops->rope(device, p->y, p->x[0], p->kept[0], p->kept[1], p->size[0],
		p->size[1], p->size[2], p->size[3], 1);
}

static void rotate_back(const GradientProblem *p)
{
	ops->rope(device, p->dx[0], p->dy, p->kept[0], p->kept[1], p->size[0],
		p->size[1], p->size[2], p->size[3], -1);
}

static void test_rope(void **state)
{
	static const size_t shapes[][4] = { { 1, 1, 1, 2 }, { 3, 7, 3, 6 },
		{ 2, 65, 1, 14 } };
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		size_t B = shapes[i][0], T = shapes[i][1];
		size_t H = shapes[i][2], D = shapes[i][3];
		size_t angles = (T + 2) * D / 2;
		GradientProblem p = { "rope", { B, T, H, D }, rotate, rotate_back };
		p.kept[0] = drawn(angles, 1, 0, 3);
		p.kept[1] = copied(p.kept[0], angles);
		for (size_t j = 0; j < angles; j++) {
			reals(p.kept[0])[j] = (real)cos(reals(p.kept[0])[j]);
			reals(p.kept[1])[j] = (real)sin(reals(p.kept[1])[j]);
		}
		add_input(&p, B * T * H * D, false);
		set_output(&p, B * T * H * D);
		check_gradients(&p);
	}
}

static void softmax(const GradientProblem *p)
{
	ops->softmax_forward(device, p->y, p->x[0], 0.7, p->size[0], p->size[1]);
}

static void softmax_back(const GradientProblem *p)
{
	size_t rows = p->size[0] * p->size[1], T = p->size[1];
	Array dy = copied(p->dy, p->ny), y = copied(p->y, p->ny);
	for (size_t row = 0; row < rows; row++) {
		size_t n = row % T + 1, masked = (T - n) * sizeof(real);
		memset(reals(dy) + row * T + n, 0xff, masked);
		memset(reals(y) + row * T + n, 0xff, masked);
	}
	ops->softmax_backward(device, p->dx[0], dy, y, 0.7, p->size[0], T);
}

static void test_softmax(void **state)
{
	static const size_t shapes[][2] = { { 1, 1 }, { 3, 1 }, { 1, 2 }, { 3, 7 },
		{ 1, 65 } };
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		size_t matrices = shapes[i][0], T = shapes[i][1], n = matrices * T * T;
		GradientProblem p = { "softmax", { matrices, T }, softmax, softmax_back };
		add_input(&p, n, false);
		set_output(&p, n);
		check_gradients(&p);
	}
}

// test the gradients of pointwise operations
static const size_t lengths[] = { 1, 7, 65 };
enum { NLENGTHS = sizeof lengths / sizeof *lengths };

static void swiglu(const GradientProblem *p)
{
	ops->swiglu_forward(device, p->y, p->x[0], p->x[1], p->size[0]);
}

static void swiglu_back(const GradientProblem *p)
{
	ops->swiglu_backward(device, p->dx[0], p->dx[1], p->dy, p->x[0], p->x[1],
		p->size[0]);
}

static void test_swiglu(void **state)
{
	for (int i = 0; i < NLENGTHS; i++) {
		GradientProblem p = { "swiglu", { lengths[i] }, swiglu, swiglu_back };
		add_input(&p, lengths[i], false);
		add_input(&p, lengths[i], false);
		set_output(&p, lengths[i]);
		check_gradients(&p);
	}
}

static void relu(const GradientProblem *p)
{
	ops->relu_forward(device, p->y, p->x[0], p->size[0]);
}

static void relu_back(const GradientProblem *p)
{
	ops->relu_backward(device, p->dx[0], p->dy, p->x[0], p->size[0]);
}

static void test_relu(void **state)
{
	for (int i = 0; i < NLENGTHS; i++) {
		GradientProblem p = { "relu", { lengths[i] }, relu, relu_back };
		add_input(&p, lengths[i], false);
		set_output(&p, lengths[i]);
		check_gradients(&p);
	}
}

// test the gradient of the loss
static void cross_entropy(const GradientProblem *p)
{
	ops->cross_entropy_forward(device, p->y, p->kept[0], p->x[0], p->tokens,
		p->size[0], p->size[1]);
}

static void cross_entropy_back(const GradientProblem *p)
{
	ops->cross_entropy_backward(device, p->dx[0], p->x[0], p->kept[0], p->tokens,
		1.0 / p->size[0], p->size[0], p->size[1]);
}

static void test_cross_entropy(void **state)
{
	static const size_t shapes[][2] = { { 1, 1 }, { 1, 7 }, { 7, 65 },
		{ 65, 13 } };
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		size_t N = shapes[i][0], V = shapes[i][1];
		GradientProblem p = { "cross-entropy", { N, V }, cross_entropy,
			cross_entropy_back };
		add_input(&p, N * V, false);
		set_output(&p, N);
		for (size_t j = 0; j < N; j++)
			reals(p.dy)[j] = (real)(1.0 / N);
		p.kept[0] = poisoned(N);
		p.tokens = drawn_tokens(N, 4, V);
		check_gradients(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		checked(test_embedding), checked(test_linear), checked(test_rmsnorm),
		checked(test_layernorm), checked(test_rope), checked(test_softmax),
		checked(test_swiglu), checked(test_relu), checked(test_cross_entropy),
	};
	omp_set_num_threads(1);         /* tiny loops; see the test of threads */
	return run_on_cpu(tests);
}
