/* matmuls against naive loops: transposes, strides, batches, beta */
#include "tests/ops/on_cpu.h"

#include <omp.h>


// lay out the matrices of a batch
enum { OUTER = 2, INNER = 3, GAP = 3 };

typedef struct MatrixLayout {
	size_t rows, columns;           /* as stored */
	size_t ld, step[2], extent;     /* extent: elements in all */
} MatrixLayout;

static MatrixLayout matrix_layout(size_t rows, size_t columns, bool batched,
	bool side_by_side)
{
	MatrixLayout l = { rows, columns, columns + GAP, { 0, 0 }, 0 };
	if (side_by_side)
		l.ld = INNER * columns + GAP;
	l.step[1] = side_by_side ? columns : rows * l.ld + GAP;
	l.step[0] = side_by_side ? rows * l.ld + GAP : INNER * l.step[1] + GAP;
	l.extent = rows * l.ld;
	if (batched)
		l.extent += (OUTER - 1) * l.step[0] + (INNER - 1) * l.step[1];
	return l;
}

/* the index of an element: outer matrix o, inner matrix i, row and column */
static size_t element_of(const MatrixLayout *l, size_t o, size_t i, size_t row,
	size_t column)
{
	return o * l->step[0] + i * l->step[1] + row * l->ld + column;
}

static Array drawn_layout(const MatrixLayout *l, size_t outer, size_t inner,
	int stream)
{
	Array a = poisoned(l->extent), values = drawn(l->extent, stream, 0, 1);
	for (size_t o = 0; o < outer; o++)
		for (size_t i = 0; i < inner; i++)
			for (size_t r = 0; r < l->rows; r++)
				for (size_t c = 0; c < l->columns; c++) {
					size_t at = element_of(l, o, i, r, c);
					reals(a)[at] = reals(values)[at];
				}
	return a;
}

typedef struct MatmulCase {
	Matmul shape;
	MatrixLayout a, b, c;
	Array A, B, C, before;          /* before: a copy of C as it was */
} MatmulCase;

static MatmulCase matmul_case(const size_t mnk[3], bool ta, bool tb,
	bool batched, bool side_by_side, double beta)
{
	size_t m = mnk[0], n = mnk[1], k = mnk[2];
	size_t outer = batched ? OUTER : 1, inner = batched ? INNER : 1;
	MatmulCase p = {
		.shape = { .m = m, .n = n, .k = k, .trans_a = ta, .trans_b = tb,
			.alpha = 0.5, .beta = beta, .outer = outer, .inner = inner },
		.a = matrix_layout(ta ? k : m, ta ? m : k, batched, side_by_side),
		.b = matrix_layout(tb ? n : k, tb ? k : n, batched, side_by_side),
		.c = matrix_layout(m, n, batched, side_by_side),
	};
	if (!batched)
		p.shape.outer = p.shape.inner = 0;      /* which means one */
	p.A = drawn_layout(&p.a, outer, inner, 1);
	p.B = drawn_layout(&p.b, outer, inner, 2);
	p.C = poisoned(p.c.extent);
	if (beta != 0)
		p.C = drawn_layout(&p.c, outer, inner, 3);
	p.before = copied(p.C, p.c.extent);
	p.shape.lda = p.a.ld, p.shape.ldb = p.b.ld, p.shape.ldc = p.c.ld;
	memcpy(p.shape.step_a, p.a.step, sizeof p.a.step);
	memcpy(p.shape.step_b, p.b.step, sizeof p.b.step);
	memcpy(p.shape.step_c, p.c.step, sizeof p.c.step);
	return p;
}

// multiply naively, in double
static double term_of_matmul(const MatmulCase *p, const size_t batch[2],
	size_t row, size_t column, size_t l)
{
	bool ta = p->shape.trans_a, tb = p->shape.trans_b;
	size_t o = batch[0], i = batch[1];
	size_t a = element_of(&p->a, o, i, ta ? l : row, ta ? row : l);
	size_t b = element_of(&p->b, o, i, tb ? column : l, tb ? l : column);
	return p->shape.alpha * reals(p->A)[a] * reals(p->B)[b];
}

static Expected naive_element(const MatmulCase *p, const size_t batch[2],
	size_t row, size_t column)
{
	double sum = 0, magnitude = 0;
	for (size_t l = 0; l < p->shape.k; l++) {
		double term = term_of_matmul(p, batch, row, column, l);
		sum += term;
		magnitude += fabs(term);
	}
	if (p->shape.beta != 0) {
		size_t at = element_of(&p->c, batch[0], batch[1], row, column);
		sum += p->shape.beta * reals(p->before)[at];
		magnitude += fabs(p->shape.beta * reals(p->before)[at]);
	}
	return rounded(sum, magnitude, p->shape.k + 3.0);
}

// compare one matmul with the naive one
static void check_matmul(const MatmulCase *p)
{
	const Matmul *s = &p->shape;
	Expected *want = expected(p->c.extent);
	char *inside = guarded(p->c.extent);
	size_t outer = s->outer ? s->outer : 1, inner = s->inner ? s->inner : 1;
	for (size_t o = 0; o < outer; o++)
		for (size_t i = 0; i < inner; i++)
			for (size_t r = 0; r < s->m; r++)
				for (size_t c = 0; c < s->n; c++) {
					size_t at = element_of(&p->c, o, i, r, c);
					want[at] = naive_element(p, (size_t[]){ o, i }, r, c);
					inside[at] = 1;
				}
	ops->matmul(device, p->C, p->A, p->B, *s);
	// check that the gaps of the output kept their bytes
	for (size_t at = 0; at < p->c.extent; at++) {
		if (inside[at] == 1)
			continue;
		if (memcmp(&reals(p->C)[at], &reals(p->before)[at], sizeof(real)) != 0)
			fail_msg("element %zu, in a gap of the output, was written", at);
		reals(p->C)[at] = 0;
		want[at] = (Expected){ 0, 0 };
	}
	char what[96];
	snprintf(what, sizeof what,
		"%zu x %zu x %zu, transposed %d %d, batch %zu %zu, beta %g",
		s->m, s->n, s->k, s->trans_a, s->trans_b, outer, inner, s->beta);
	expect_close(what, p->C, want, p->c.extent);
}

// test all transposes, strides, batches and betas
static void matmuls_are_right(void **state)
{
	static const size_t sizes[][3] = {
		{ 1, 1, 1 }, { 7, 65, 13 }, { 65, 1, 7 }, { 3, 5, 65 },
	};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (int bits = 0; bits < 32; bits++) {
			bool batched = bits & 4;
			MatmulCase p = matmul_case(sizes[i], bits & 1, bits & 2, batched,
				batched && (bits & 8), bits & 16 ? 1 : 0);
			check_matmul(&p);
		}
}

// test that a matmul's bits repeat
static void bits_repeat(void **state)
{
	int threads = omp_get_max_threads();
	const size_t long_sums[3] = { 257, 129, 301 };
	const size_t a_head[3] = { 65, 33, 17 };
	MatmulCase large = matmul_case(long_sums, false, true, false, false, 0);
	MatmulCase heads = matmul_case(a_head, false, true, true, true, 0);
	for (int run = 0; run < 4; run++) {
		Array once = copied(large.C, large.c.extent);
		Array batch = copied(heads.C, heads.c.extent);
		ops->matmul(device, large.C, large.A, large.B, large.shape);
		omp_set_num_threads(run == 0 ? threads : run);
		ops->matmul(device, heads.C, heads.A, heads.B, heads.shape);
		omp_set_num_threads(threads);
		if (run == 0)
			continue;
		expect_same("a large matmul, repeated", large.C, once,
			large.c.extent);
		expect_same("a batch, with more threads", heads.C, batch,
			heads.c.extent);
	}
}

// test that matmuls round and let NaNs through
static const size_t odd_sizes[3] = { 7, 65, 13 };

static void matmuls_round(void **state)
{
	for (int i = 0; i < 8; i++) {
		bool batched = i & 1;
		Type type = i & 2 ? FP16 : BF16;
		MatmulCase p = matmul_case(odd_sizes, false, true, batched, batched,
			i / 4);
		Array low = copied(p.C, p.c.extent);
		low.type = type;
		ops->matmul(device, p.C, p.A, p.B, p.shape);
		ops->matmul(device, low, p.A, p.B, p.shape);
		for (size_t at = 0; at < p.c.extent; at++)
			if (!isnan(reals(p.C)[at]))
				reals(p.C)[at] = round_to(type, (float)reals(p.C)[at]);
		expect_same(type_names[type], low, p.C, p.c.extent);
	}
}

static void nans_reach_the_matmul(void **state)
{
	for (int i = 0; i < 4; i++) {
		MatmulCase p = matmul_case(odd_sizes, false, false, false, false, 1);
		const MatrixLayout *l = i < 2 ? &p.a : &p.b;
		size_t last = element_of(l, 0, 0, l->rows - 1, l->columns - 1);
		reals(i < 2 ? p.A : p.B)[i % 2 ? last : 0] = (real)NAN;
		ops->matmul(device, p.C, p.A, p.B, p.shape);
		size_t row = i == 1 ? 6 : 0, column = i == 3 ? 64 : 0;
		assert_true(isnan(reals(p.C)[element_of(&p.c, 0, 0, row, column)]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		checked(matmuls_are_right), checked(bits_repeat),
		checked(matmuls_round), checked(nans_reach_the_matmul),
	};
	return run_on_cpu(tests);
}
