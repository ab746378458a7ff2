/* forward values of the plain operations of the model against naive loops in
 * double */
#include "tests/ops/on_cpu.h"


// test the elementary operations
static void test_elementary(void **state)
{
	enum { n = 65 };
	Array a = drawn(n, 1, 0, 1), b = drawn(n, 2, 0, 1000);
	Array filled = poisoned(n), cast = poisoned(n);
	Array sum = poisoned(n), relu = poisoned(n);
	Expected *want = expected(n);
	reals(a)[3] = 0;
	ops->fill(device, filled, 0.1, n);
	ops->cast(device, cast, a, n);
	ops->add(device, sum, a, b, n);
	ops->relu_forward(device, relu, a, n);
	expect_same("cast", cast, a, n);
	for (int i = 0; i < n; i++)
		want[i] = rounded(0.1, 0.1, 1);
	expect_close("fill", filled, want, n);
	for (int i = 0; i < n; i++) {
		double value = (double)reals(a)[i] + reals(b)[i];
		want[i] = rounded(value, fabs(value), 1);
	}
	expect_close("add", sum, want, n);
	for (int i = 0; i < n; i++)
		want[i] = (Expected){ reals(a)[i] > 0 ? reals(a)[i] : 0, 0 };
	expect_close("relu", relu, want, n);
}

typedef struct Reductions {
	double mean;
	int32_t nonfinite, count;       /* the count starts from five */
} Reductions;

static Reductions reduce(Array x, size_t n)
{
	Array mean = poisoned(1);
	Reductions r = { .nonfinite = -1, .count = 5 };
	ops->mean(device, mean, &r.nonfinite, x, n);
	ops->count_nonfinite(device, &r.count, x, n);
	r.mean = reals(mean)[0];
	return r;
}

static void test_reductions(void **state)
{
	for (size_t n = 1; n < 70; n += 11) {
		Array x = drawn(n, 1, 3, 1);
		double sum = 0;
		for (size_t i = 0; i < n; i++)
			sum += reals(x)[i];
		Reductions r = reduce(x, n);
		assert_true(fabs(r.mean - sum / n) <= 4 * EPS && !r.nonfinite);
		assert_int_equal(r.count, 5);
		reals(x)[n / 2] = (real)-INFINITY;
		r = reduce(x, n);
		assert_true(isinf(r.mean) && r.nonfinite && r.count == 6);
		reals(x)[n - 1] = (real)NAN;
		r = reduce(x, n);
		assert_true(isnan(r.mean) && r.nonfinite);
		assert_int_equal(r.count, n / 2 == n - 1 ? 6 : 7);
	}
}

static void test_embedding(void **state)
{
	enum { N = 9, C = 65, V = 5 };
	Array table = drawn(V * C, 1, 0, 1), x = poisoned(N * C);
	int32_t *tokens = drawn_tokens(N, 2, V);
	tokens[0] = V - 1;
	ops->embedding_forward(device, x, table, tokens, N, C);
	for (int i = 0; i < N; i++)
		expect_same("a token's row", array_at(x, i * C),
			array_at(table, tokens[i] * C), C);
}

// test the values of the norms
static const size_t shapes[][2] = {
	{ 1, 1 }, { 7, 1 }, { 1, 7 }, { 7, 65 }, { 65, 7 }, { 2, 1030 },
};
enum { NSHAPES = sizeof shapes / sizeof *shapes };

static void check_rmsnorm(size_t rows, size_t C, double mean)
{
	Array x = drawn(rows * C, 1, mean, 2), g = drawn(C, 2, 1, 0.5);
	Array y = poisoned(rows * C), rho = poisoned(rows);
	Expected *want = expected(rows * C), *want_rho = expected(rows);
	for (size_t i = 0; i < rows; i++) {
		double sum = 0;
		for (size_t j = 0; j < C; j++)
			sum += (double)reals(x)[i * C + j] * reals(x)[i * C + j];
		double r = pow(sum / C + 1e-5, -0.5);
		want_rho[i] = rounded(r, r, 2);
		for (size_t j = 0; j < C; j++) {
			double value = reals(x)[i * C + j] * r * reals(g)[j];
			want[i * C + j] = rounded(value, fabs(value), 4);
		}
	}
	ops->rmsnorm_forward(device, y, rho, x, g, rows, C, 1e-5);
	expect_close("rmsnorm", y, want, rows * C);
	expect_close("rmsnorm's factor", rho, want_rho, rows);
}

static void test_rmsnorm(void **state)
{
	for (int i = 0; i < NSHAPES; i++) {
		check_rmsnorm(shapes[i][0], shapes[i][1], 0.5);
		check_rmsnorm(shapes[i][0], shapes[i][1], 1000);
	}
}

typedef struct NormedRow {
	Expected *y, *mean, *rstd;
} NormedRow;

static void expect_row(NormedRow want, const real *x, const real *g,
	const real *b, size_t C)
{
	double sum = 0, squares = 0;
	for (size_t j = 0; j < C; j++)
		sum += x[j];
	double m = sum / C;
	for (size_t j = 0; j < C; j++)
		squares += (x[j] - m) * (x[j] - m);
	double r = pow(squares / C + 1e-5, -0.5);
	*want.mean = rounded(m, fabs(m) + 1e-6, 2);
	*want.rstd = rounded(r, r, 2);
	for (size_t j = 0; j < C; j++) {
		double scaled = (x[j] - m) * r * g[j];
		double magnitude = fabs(m * r * g[j]) + fabs(scaled) + fabs(b[j]);
		want.y[j] = rounded(scaled + b[j], magnitude, 5);
	}
}

static void check_layernorm(size_t rows, size_t C, double center)
{
	size_t n = rows * C;
	Array x = drawn(n, 1, center, 1), y = poisoned(n);
	Array g = drawn(C, 2, 1, 0.5), b = drawn(C, 3, 0, 1);
	Array mean = poisoned(rows), rstd = poisoned(rows);
	NormedRow want = { expected(n), expected(rows), expected(rows) };
	for (size_t i = 0; i < rows; i++)
		expect_row((NormedRow){ want.y + i * C, want.mean + i, want.rstd + i },
			reals(x) + i * C, g.at, b.at, C);
	ops->layernorm_forward(device, y, mean, rstd, x, g, b, rows, C, 1e-5);
	expect_close("layernorm", y, want.y, n);
	expect_close("layernorm's mean", mean, want.mean, rows);
	expect_close("layernorm's factor", rstd, want.rstd, rows);
}

static void test_layernorm(void **state)
{
	for (int i = 0; i < NSHAPES; i++) {
		check_layernorm(shapes[i][0], shapes[i][1], 0.5);
		check_layernorm(shapes[i][0], shapes[i][1], 1000);
	}
}

// test the values of the rotary embedding
typedef struct Rotation {
	double cosine, sine;
} Rotation;

static void expect_rotated(Expected want[2], const real x[2], Rotation r)
{
	double c = r.cosine, s = r.sine, u = x[0], v = x[1];
	want[0] = rounded(c * u - s * v, fabs(c * u) + fabs(s * v), 2);
	want[1] = rounded(s * u + c * v, fabs(s * u) + fabs(c * v), 2);
}

static void check_rope(size_t B, size_t T, size_t H, size_t D, int direction)
{
	size_t n = B * T * H * D, half = D / 2;
	Array x = drawn(n, 1, 0, 2), y = poisoned(n);
	Array cosine = drawn(T * half, 2, 0, 1), sine = drawn(T * half, 3, 0, 1);
	Expected *want = expected(n);
	for (size_t pair = 0; pair < n / 2; pair++) {
		size_t t = pair / (half * H) % T, i = pair % half;
		Rotation r = { reals(cosine)[t * half + i],
			direction * reals(sine)[t * half + i] };
		expect_rotated(want + 2 * pair, reals(x) + 2 * pair, r);
	}
	ops->rope(device, y, x, cosine, sine, B, T, H, D, direction);
	expect_close("rope", y, want, n);
}

static void test_rope(void **state)
{
	for (int direction = -1; direction <= 1; direction += 2) {
		check_rope(1, 1, 1, 2, direction);
		check_rope(3, 7, 3, 6, direction);
		check_rope(2, 65, 1, 14, direction);
	}
}

// test the values of softmax
static void expect_probabilities(Expected *want, const real *s, double scale,
	size_t n)
{
	double largest = s[0], sum = 0, spread = 0;
	for (size_t j = 1; j < n; j++)
		largest = fmax(largest, s[j]);
	for (size_t j = 0; j < n; j++)
		sum += exp(scale * (s[j] - largest));
	for (size_t j = 0; j < n; j++) {
		double exponent = scale * (s[j] - largest);
		spread += exp(exponent) / sum * fabs(exponent);
	}
	for (size_t j = 0; j < n; j++) {
		double exponent = scale * (s[j] - largest), p = exp(exponent) / sum;
		want[j] = rounded(p, p, 3 * fabs(exponent) + 3 * spread + 8);
		want[j].limit += 0x1p-126;
	}
}

static void check_softmax(size_t matrices, size_t T, double scale, double sd)
{
	size_t n = matrices * T * T;
	Array S = drawn(n, 1, 0, sd), P = poisoned(n);
	Expected *want = expected(n);
	for (size_t row = 0; row < matrices * T; row++) {
		size_t first = row * T, n = row % T + 1;
		memset(reals(S) + first + n, 0xff, (T - n) * sizeof(real));
		expect_probabilities(want + first, reals(S) + first, scale, n);
		for (size_t j = n; j < T; j++)
			want[first + j] = (Expected){ 0, 0 };
	}
	ops->softmax_forward(device, P, S, scale, matrices, T);
	expect_close("softmax", P, want, n);
}

static void test_softmax(void **state)
{
	static const size_t contexts[] = { 1, 2, 7, 65 };
	for (int i = 0; i < 4; i++) {
		check_softmax(3, contexts[i], 0.125, 8);
		check_softmax(3, contexts[i], 1, 3);
		check_softmax(3, contexts[i], 1, 1e4);
	}
}

static void test_infinite_scores(void **state)
{
	enum { T = 65 };
	Array S = poisoned(T * T), P = poisoned(T * T);
	Expected *want = expected(T * T);
	for (size_t i = 0; i < T * T; i++) {
		size_t row = i / T, j = i % T;
		bool finite = row % 3 && j == row / 2;
		reals(S)[i] = finite ? 5 : (real)-INFINITY;
		want[i] = (Expected){ finite, 0 };
	}
	ops->softmax_forward(device, P, S, 0.125, 1, T);
	expect_close("softmax of infinite scores", P, want, T * T);
}

// test the values of SwiGLU
static void test_swiglu(void **state)
{
	enum { n = 201 };
	Array a = drawn(n, 1, 0, 4), b = drawn(n, 2, 0, 4), h = poisoned(n);
	Expected *want = expected(n);
	for (int i = 0; i < 100; i++)
		reals(a)[i] = (real)(2 * i - 100);
	reals(a)[100] = (real)1e4;
	reals(a)[101] = (real)-1e4;
	for (int i = 0; i < n; i++) {
		double value = reals(a)[i] / (1 + exp(-reals(a)[i])) * reals(b)[i];
		want[i] = rounded(value, fabs(value), 7);
		want[i].limit += 0x1p-115;
	}
	ops->swiglu_forward(device, h, a, b, n);
	expect_close("swiglu", h, want, n);
}

// test the values of the loss and of its gradient
typedef struct ExpectedLoss {
	Expected *loss, *lse, *gradient;
} ExpectedLoss;

static void expect_token(ExpectedLoss want, const real *z, size_t target,
	size_t V, double scale)
{
	double largest = z[0], sum = 0, spread = 0;
	for (size_t v = 1; v < V; v++)
		largest = fmax(largest, z[v]);
	for (size_t v = 0; v < V; v++)
		sum += exp(z[v] - largest);
	for (size_t v = 0; v < V; v++)
		spread += exp(z[v] - largest) / sum * (largest - z[v]);
	double lse = largest + log(sum);
	double loss = largest - z[target] + log(sum);
	*want.lse = rounded(lse, fabs(lse) + spread + 3, 1);
	*want.loss = rounded(loss, fabs(loss) + spread + 3, 1);
	for (size_t v = 0; v < V; v++) {
		double p = exp(z[v] - largest) / sum, hit = v == target;
		double roundings = fabs(lse) + spread + fabs(z[v] - lse) + 8;
		want.gradient[v] = rounded(scale * (p - hit),
			scale * (p * roundings + 3 * hit), 1);
		want.gradient[v].limit += 0x1p-140;
	}
}

static void check_loss(size_t N, size_t V, double sd)
{
	Array z = drawn(N * V, 1, 0, sd), dz = poisoned(N * V);
	Array losses = poisoned(N), lse = poisoned(N);
	int32_t *targets = drawn_tokens(N, 2, V);
	Expected *want[3] = { expected(N), expected(N), expected(N * V) };
	for (size_t i = 0; i < N; i++)
		expect_token((ExpectedLoss){ want[0] + i, want[1] + i, want[2] + i * V },
			reals(z) + i * V, targets[i], V, 1.0 / N);
	ops->cross_entropy_forward(device, losses, lse, z, targets, N, V);
	expect_close("the loss", losses, want[0], N);
	expect_close("log of the sum", lse, want[1], N);
	ops->cross_entropy_backward(device, dz, z, lse, targets, 1.0 / N, N, V);
	expect_close("the loss's gradient", dz, want[2], N * V);
}

static void test_infinite_logits(void **state)
{
	enum { N = 3, V = 65 };
	Array z = poisoned(N * V), dz = poisoned(N * V), losses = poisoned(N),
		lse = poisoned(N);
	int32_t targets[N] = { 7, 8, 7 };
	for (int i = 0; i < N * V; i++)
		reals(z)[i] = i % V == 7 && i / V < 2 ? 5 : (real)-INFINITY;
	ops->cross_entropy_forward(device, losses, lse, z, targets, N, V);
	ops->cross_entropy_backward(device, dz, z, lse, targets, 1, N, V);
	assert_true(reals(losses)[0] == 0 && reals(losses)[1] == INFINITY);
	assert_true(isnan(reals(losses)[2]) && isnan(reals(dz)[2 * V + 7]));
	for (int i = 0; i < 2 * V; i++)
		assert_true(reals(dz)[i] == (i == V + 7) - (i == V + 8));
}

static void test_cross_entropy(void **state)
{
	for (int i = 0; i < NSHAPES; i++) {
		check_loss(shapes[i][0], shapes[i][1], 4);
		check_loss(shapes[i][0], shapes[i][1], 1e4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		checked(test_elementary), checked(test_reductions),
		checked(test_embedding), checked(test_rmsnorm),
		checked(test_layernorm), checked(test_rope), checked(test_softmax),
		checked(test_infinite_scores), checked(test_infinite_logits),
		checked(test_swiglu), checked(test_cross_entropy),
	};
	return run_on_cpu(tests);
}
