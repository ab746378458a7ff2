/* matmul on the GPU against the CPU */
#define _GNU_SOURCE
#include "tests/ops/cuda/both.h"

#include "ops/gemm_choices.h"
#include "tests/base/folder.h"

// lay out a batch of matrices
typedef enum Batching { SINGLE, STACKED, SIDE_BY_SIDE, NBATCHES } Batching;
enum { OUTER = 2, INNER = 3 };

typedef struct Layout {
	size_t rows, columns, ld, step[2], extent;
} Layout;

static Layout layout(size_t rows, size_t columns, Batching batch, size_t gap)
{
	bool side = batch == SIDE_BY_SIDE;
	size_t ld = columns * (side ? INNER : 1) + gap, whole = rows * ld + gap;
	return (Layout){ rows, columns, ld,
		{ side ? whole : INNER * whole, side ? columns : whole },
		batch == SINGLE ? whole : OUTER * (side ? whole : INNER * whole) };
}

static void fill_matrices(Value *v, const Layout *l, Batching batch,
	Values inside, double outside, int stream)
{
	const size_t none[DIMS] = { 0 };
	size_t outer = batch == SINGLE ? 1 : OUTER, inner = batch == SINGLE ? 1
		: INNER;
	for (size_t i = 0; i < l->extent; i++)
		reals(v->cpu)[i] = (real)outside;
	for (size_t m = 0; m < outer * inner; m++)
		for (size_t i = 0; i < l->rows * l->columns; i++) {
			size_t at = m / inner * l->step[0] + m % inner * l->step[1]
				+ i / l->columns * l->ld + i % l->columns;
			reals(v->cpu)[at] = (real)chosen(inside, none, stream, at);
		}
	round_array(v->type, v->cpu.at, v->n);
}

// make a matmul of exact numbers
typedef struct Kind {
	Type operand, result;
	double beta;
} Kind;

static Matmul shape;                    /* of the matmul at hand */
static const Argument operand = { .role = AS_IN },
	result = { .role = AS_UPDATED },
	/* a library may round the product before it adds C */
	twice = { .role = AS_UPDATED, .relative = 1 << 16, .absolute = 1 << 16 };

static void multiply(Device *d, const Ops *o, const Array *a, const size_t *n,
	int how)
{
	(void)n, (void)how;
	o->matmul(d, a[0], a[1], a[2], shape);
}

static Trial gemm(const size_t *mnk, int transposes, Batching batch,
	size_t gap, const Kind *kind, size_t skew)
{
	size_t m = mnk[0], n = mnk[1], k = mnk[2];
	bool ta = transposes & 1, tb = transposes & 2;
	const Layout c = layout(m, n, batch, gap),
		a = layout(ta ? k : m, ta ? m : k, batch, gap),
		b = layout(tb ? n : k, tb ? k : n, batch, gap);
	Trial t = { .n = mnk };
	snprintf(t.label, sizeof t.label, "%zu x %zu x %zu, transposed %d %d, "
		"batch %d, gap %zu, %s to %s, beta %g, skewed by %zu", m, n, k, ta, tb,
		batch, gap, type_names[kind->operand], type_names[kind->result],
		kind->beta, skew);
	bool again = kind->beta && kind->result != FP32;
	Value *C = add_value(&t, again ? &twice : &result, kind->result, c.extent),
		*A = add_value(&t, &operand, kind->operand, a.extent),
		*B = add_value(&t, &operand, kind->operand, b.extent);
	fill_matrices(C, &c, batch, kind->beta ? EIGHTHS : NONFINITE, 7, 0);
	fill_matrices(A, &a, batch, EIGHTHS, NAN, 1);
	fill_matrices(B, &b, batch, EIGHTHS, NAN, 2);
	for (int i = 0; i < t.count; i++)
		put_on_gpu(&t, &t.value[i], skew);
	// describe the matmul to the library
	shape = (Matmul){ .m = m, .n = n, .k = k, .trans_a = ta, .trans_b = tb,
		.lda = a.ld, .ldb = b.ld, .ldc = c.ld,
		.alpha = 0.5, .beta = kind->beta,
		.outer = batch == SINGLE ? 0 : OUTER,       /* 0 means 1 */
		.inner = batch == SINGLE ? 0 : INNER,
		.step_a = { a.step[0], a.step[1] }, .step_b = { b.step[0], b.step[1] },
		.step_c = { c.step[0], c.step[1] } };
	return t;
}

// multiply in every layout
static const Kind kinds[] = {
	{ FP32, FP32, 0 }, { FP32, FP32, 1 }, { TF32, FP32, 0 }, { TF32, FP32, 1 },
	{ BF16, BF16, 0 }, { BF16, BF16, 1 }, { BF16, FP32, 0 }, { BF16, FP32, 1 },
	{ FP16, FP16, 0 }, { FP16, FP16, 1 }, { FP16, FP32, 0 }, { FP16, FP32, 1 },
	{ FP32, BF16, 0 }, { FP32, BF16, 1 }, { FP32, FP16, 0 },
};
static const Sizes sizes[] = { { 1, 1, 1 }, { 3, 5, 65 }, { 8, 16, 24 },
	{ 65, 1, 7 }, { 1, 130, 33 }, { 17, 101, 129 }, { 64, 64, 64 },
	{ 1, 300, 257 }, { 130, 33, 1 }, { 33, 17, 1000 }, { 128, 192, 64 },
};

static void exact_matmuls_are_equal(void **state)
{
	enum { LAYOUTS = 4 * NBATCHES * 2 * 2 };
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
		for (int layout = 0; layout < LAYOUTS && !too_large(sizes[s]); layout++)
			for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
				size_t gap = layout & 4 ? 3 : 0, skew = layout >> 3 & 1;
				Trial t = gemm(sizes[s], layout & 3, (Batching)(layout / 16), gap,
					&kinds[k], skew);
				run_trial(&t, multiply, 0);
			}
}

// multiply on some of the multiprocessors
static void some_multiprocessors_suffice(void **state)
{
	static const Sizes large[] = { { 384, 640, 512 }, { 64, 72, 2048 } };
	static const int spare[] = { 1, 4, 12 };
	for (int i = 0; i < 3; i++)
		for (int s = 0; s < 2; s++)
			for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
				Trial t = gemm(large[s], 0, SINGLE, 0, &kinds[k], 0);
				gpu->spare_sms = spare[i];
				run_trial(&t, multiply, 0);
				gpu->spare_sms = 0;
			}
}

// time proposals, and find the choice in a file
/* how many choices a trial of one matmul adds */
static int choices_after(const char *path)
{
	static const Sizes large = { 2048, 2048, 2048 };
	static const Kind kind = { BF16, BF16, 0 };
	GemmChoices *choices = gemm_choices_read(path, "here");
	gpu = device_open("cuda");
	gpu->gemms = choices;
	Trial t = gemm(large, 2, SINGLE, 0, &kind, 0);
	run_trial(&t, multiply, 0);
	device_close(&gpu);
	int added = gemm_choices_counts(choices).added;
	gemm_choices_write(choices);
	gemm_choices_free(&choices);
	return added;
}

static void proposals_are_timed(void **state)
{
	Device *first = gpu;
	assert_int_equal(make_folder(state), 0);
	assert_int_equal(choices_after(path), 1);
	assert_int_equal(choices_after(path), 0);
	no_other_file_is_left(state);
	gpu = first;
}

// tell fp32 from tf32
static void multiply_as_tf32(Device *d, const Ops *o, const Array *a,
	const size_t *n, int how)
{
	(void)n, (void)how;
	o->matmul(d, a[0], (Array){ a[1].at, TF32 }, (Array){ a[2].at, TF32 }, shape);
}

static void fp32_is_not_tf32(void **state)
{
	static const Argument exact = { .role = AS_OUT, .relative = 16 },
		rough = { .role = AS_OUT, .relative = 0x1p15 };
	enum { M = 100, N = 72, K = 8 };
	bool tf32 = ops_for(gpu)->reads(gpu, FP32, TF32);
	for (int loose = 0; loose <= tf32; loose++) {
		Trial t = { .label = "tf32 or not", .n = (Sizes){ M, N, K } };
		const Layout a = layout(M, K, SINGLE, 0), b = layout(K, N, SINGLE, 0);
		add_value(&t, loose ? &rough : &exact, FP32, M * N);
		Value *A = add_value(&t, &operand, FP32, M * K),
			*B = add_value(&t, &operand, FP32, K * N);
		fill_matrices(A, &a, SINGLE, GAIN, 0, 1);
		fill_matrices(B, &b, SINGLE, GAIN, 0, 2);
		for (int i = 0; i < t.count; i++)
			put_on_gpu(&t, &t.value[i], 0);
		shape = (Matmul){ .m = M, .n = N, .k = K, .lda = K, .ldb = N, .ldc = N,
			.alpha = 1 };
		run_trial(&t, loose ? multiply_as_tf32 : multiply, 0);
	}
}

// check NaNs, and types that need no cast
static void nans_reach_the_matmul(void **state)
{
	enum { M = 65, N = 17, K = 33 };
	for (Type type = FP32; type <= FP16; type++) {
		Array x[3], host = poisoned(M * K + K * N), got = poisoned(M * N);
		const size_t n[3] = { M * N, M * K, K * N };
		for (int i = 0; i < 3; i++) {
			x[i] = array_new(gpu, n[i], i ? type : FP32, MEM_TEMPORARY,
				"matrix");
			held[i] = x[i].at;
		}
		for (size_t i = 0; i < M * K + K * N; i++)
			reals(host)[i] = i == M * K - 1 ? (real)NAN : 1;
		array_write(gpu, x[1], host.at, M * K);
		array_write(gpu, x[2], reals(host) + M * K, K * N);
		ops_for(gpu)->matmul(gpu, x[0], x[1], x[2], (Matmul){ .m = M, .n = N,
			.k = K, .lda = K, .ldb = N, .ldc = N, .alpha = 1 });
		array_read(gpu, got.at, x[0], M * N);
		for (size_t i = 0; i < M * N; i++)
			if (i / N == M - 1 ? !isnan(reals(got)[i]) : reals(got)[i] != K)
				fail_msg("%s: element (%zu, %zu) is %g", type_names[type],
					i / N, i % N, (double)reals(got)[i]);
		assert_int_equal(release_both(NULL), 0);
	}
}

static void readable_types_are_alike(void **state)
{
	const Type all[] = { FP32, BF16, FP16, TF32 };
	for (int s = 0; s < 4; s++)
		for (int w = 0; w < 4; w++) {
			bool same = all[s] == all[w];
			bool tf32 = all[s] == FP32 && all[w] == TF32;
			bool reads = ops_for(gpu)->reads(gpu, all[s], all[w]);
			if (reads ? !same && !tf32 : same)
				fail_msg("%s %s as %s", type_names[all[s]],
					reads ? "is read" : "is not read", type_names[all[w]]);
		}
}

TESTS_BETWEEN(open_both, close_both,
	on_gpu(exact_matmuls_are_equal),
	on_gpu(some_multiprocessors_suffice),
	on_gpu(proposals_are_timed),
	on_gpu(fp32_is_not_tf32),
	on_gpu(nans_reach_the_matmul),
	on_gpu(readable_types_are_alike))
