#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "cases/cluster.h"
#include "cases/ffn.h"
#include "tests/base/program.h"

enum { ELEMENT_NBYTES = 3 };

// make rings along one axis of a mesh
/* rings along one axis of a mesh; those of ring 1 have longer arrays */
typedef struct CollectiveTrial {
	Cluster *c;
	Axis axis;
	size_t N;
	ClusterArray *part;
} CollectiveTrial;

static size_t rank(const CollectiveTrial *t, Axis axis, size_t d)
{
	size_t X = t->c->length[AXIS_X];
	return axis == AXIS_X ? d % X : d / X;
}

static size_t ring(const CollectiveTrial *t, size_t d)
{
	return rank(t, t->axis == AXIS_X ? AXIS_Y : AXIS_X, d);
}

static CollectiveTrial trial_new(size_t X, size_t Y, Axis axis, size_t rows,
	size_t width)
{
	CollectiveTrial t = { .c = cluster_new(X, Y, ELEMENT_NBYTES), .axis = axis };
	t.N = t.c->length[axis];
	t.part = need(malloc(X * Y * sizeof *t.part));
	for (size_t d = 0; d < X * Y; d++) {
		size_t own_rows = rows + (ring(&t, d) == 1 ? 5 : 0);
		t.part[d] = (ClusterArray){ need(calloc(own_rows * width,
			sizeof(double))),
			own_rows, width };
		assert_int_equal(cluster_rank(t.c, axis, d), rank(&t, axis, d));
	}
	return t;
}

// free the arrays of a trial
static void free_arrays(CollectiveTrial *t)
{
	for (size_t d = 0; d < cluster_size(t->c); d++) {
		free(t->part[d].at);
		t->part[d].at = NULL;
	}
}

static void trial_free(CollectiveTrial *t)
{
	free_arrays(t);
	free(t->part);
	cluster_free(&t->c);
}

// say what a device holds before and after
/* element i that device d holds */
typedef double Element(const CollectiveTrial *t, size_t d, size_t i);

static double number(size_t ring, size_t rank, size_t i)
{
	return (double)((ring * 31 + rank * 17 + i * 7) % 101) - 50;
}

// say what is common, added, or a device's own
static double common(const CollectiveTrial *t, size_t d, size_t i)
{
	return number(ring(t, d), 0, i);
}

static double addend(const CollectiveTrial *t, size_t d, size_t i)
{
	return number(ring(t, d), rank(t, t->axis, d), i);
}

static double sum(const CollectiveTrial *t, size_t d, size_t i)
{
	double all = 0;
	for (size_t k = 0; k < t->N; k++)
		all += number(ring(t, d), k, i);
	return all;
}

static bool own(const CollectiveTrial *t, size_t d, size_t i)
{
	size_t rows = t->part[d].rows, row = i / t->part[d].width,
		k = rank(t, t->axis, d);
	return row >= chunk_start(rows, t->N, k)
		&& row < chunk_start(rows, t->N, k + 1);
}

static double own_common(const CollectiveTrial *t, size_t d, size_t i)
{
	return own(t, d, i) ? common(t, d, i) : NAN;
}

static double own_sum(const CollectiveTrial *t, size_t d, size_t i)
{
	return own(t, d, i) ? sum(t, d, i) : NAN;
}

// state the law of each collective
/* elements that the busiest device of a ring sends in a step */
typedef size_t Sent(size_t rows, size_t width, size_t N);

static size_t rows_of_chunk(size_t rows, size_t width, size_t N)
{
	return (rows + N - 1) / N * width;
}

static size_t elements_of_chunk(size_t rows, size_t width, size_t N)
{
	return (rows * width + N - 1) / N;
}

static size_t whole_array(size_t rows, size_t width, size_t N)
{
	(void)N;
	return rows * width;
}

// run a collective with data by its law
/* what a collective makes of which arrays, in trips of N - 1 steps */
typedef struct CollectiveLaw {
	void (*run)(Cluster *c, Axis axis, ClusterArray *part);
	Element *before, *after;
	size_t trips;
	Sent *sent;
} CollectiveLaw;

static const CollectiveLaw laws[] = {
	{ ring_all_gather, own_common, common, 1, rows_of_chunk },
	{ ring_reduce_scatter, addend, own_sum, 1, rows_of_chunk },
	{ ring_all_reduce, addend, sum, 2, elements_of_chunk },
	{ alternate_ring_all_reduce, addend, sum, 1, whole_array },
};
enum { GATHER, SCATTER, REDUCE, ALTERNATE, LAWS };

static void expect_array(const CollectiveTrial *t, size_t d, Element *element)
{
	ClusterArray p = t->part[d];
	for (size_t i = 0; i < p.rows * p.width; i++) {
		double want = element(t, d, i);
		if (isnan(want) ? !isnan(p.at[i]) : p.at[i] != want)
			fail_msg("rings of %zu along %d, arrays (%zu, %zu): element %zu of "
				"device %zu is %g, not %g", t->N, t->axis, p.rows, p.width, i,
				d, p.at[i], want);
	}
}

static void try_data(CollectiveTrial *t, const CollectiveLaw *law)
{
	size_t devices = cluster_size(t->c);
	for (size_t d = 0; d < devices; d++)
		for (size_t i = 0; i < t->part[d].rows * t->part[d].width; i++)
			t->part[d].at[i] = law->before(t, d, i);
	law->run(t->c, t->axis, t->part);
	for (size_t d = 0; d < devices; d++)
		expect_array(t, d, law->after);
}

// test: collectives on rings and meshes
typedef void Attempt(CollectiveTrial *t, const CollectiveLaw *law);

static void try_mesh(size_t X, size_t Y, Axis axis, Attempt *attempt,
	const CollectiveLaw *law)
{
	for (size_t rows = 1; rows <= 20; rows++)
		for (size_t width = 1; width <= 3; width++) {
			CollectiveTrial t = trial_new(X, Y, axis, rows, width);
			attempt(&t, law);
			trial_free(&t);
		}
}

static void try_meshes(Attempt *attempt, const CollectiveLaw *law)
{
	for (size_t N = 1; N <= 9; N++) {
		try_mesh(N, 1, AXIS_X, attempt, law);
		try_mesh(1, N, AXIS_Y, attempt, law);
	}
	try_mesh(3, 4, AXIS_X, attempt, law);
	try_mesh(3, 4, AXIS_Y, attempt, law);
}

static void chunks_cover_the_rows(void **state)
{
	for (size_t rows = 0; rows <= 20; rows++)
		for (size_t N = 1; N <= 9; N++) {
			assert_int_equal(chunk_start(rows, N, 0), 0);
			assert_int_equal(chunk_start(rows, N, N), rows);
			for (size_t k = 0; k < N; k++) {
				size_t n = chunk_start(rows, N, k + 1) - chunk_start(rows, N, k);
				assert_true(rows / N <= n && n <= (rows + N - 1) / N);
			}
		}
}

// try each collective on all meshes
static void all_gather_completes_arrays(void **state)
{
	try_meshes(try_data, &laws[GATHER]);
}

static void reduce_scatter_leaves_the_own_chunk(void **state)
{
	try_meshes(try_data, &laws[SCATTER]);
}

static void all_reduces_agree(void **state)
{
	try_meshes(try_data, &laws[REDUCE]);
	try_meshes(try_data, &laws[ALTERNATE]);
}

// test: steps and bytes
static void expect_counts(const CollectiveTrial *t, size_t steps, size_t nbytes)
{
	Axis other = t->axis == AXIS_X ? AXIS_Y : AXIS_X;
	assert_int_equal(t->c->steps[t->axis], steps);
	assert_int_equal(t->c->axis_nbytes[t->axis], nbytes);
	assert_int_equal(t->c->steps[other], 0);
	assert_int_equal(t->c->axis_nbytes[other], 0);
	assert_int_equal(cluster_flops(t->c), 0);
}

// compare counts with and without data
static void try_counts(CollectiveTrial *t, const CollectiveLaw *law)
{
	size_t steps = law->trips * (t->N - 1), most = 0;
	for (size_t d = 0; d < cluster_size(t->c); d++) {
		size_t sent = law->sent(t->part[d].rows, t->part[d].width, t->N);
		most = sent > most ? sent : most;
	}
	size_t nbytes = steps * most * ELEMENT_NBYTES;
	law->run(t->c, t->axis, t->part);
	expect_counts(t, steps, nbytes);
	free_arrays(t);
	law->run(t->c, t->axis, t->part);
	expect_counts(t, 2 * steps, 2 * nbytes);
	cluster_reset(t->c);
	expect_counts(t, 0, 0);
}

static void bytes_are_those_of_the_formulas(void **state)
{
	for (int i = 0; i < LAWS; i++)
		try_meshes(try_counts, &laws[i]);
}

// test: a matmul of one device
static double entry(size_t name, size_t row, size_t column)
{
	return (double)((name * 5 + row * 3 + column * 7) % 11) - 5;
}

/* a matrix of (rows, width), which may be stored transposed */
static ClusterArray matrix(size_t name, size_t rows, size_t width,
	bool transposed)
{
	ClusterArray p = { need(malloc(rows * width * sizeof *p.at)), rows, width };
	if (transposed)
		p.rows = width, p.width = rows;
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < width; j++)
			p.at[transposed ? j * rows + i : i * width + j] = entry(name, i, j);
	return p;
}

// expect a matrix to be the product
static void expect_product(ClusterArray C, double beta, size_t k)
{
	for (size_t i = 0; i < C.rows; i++)
		for (size_t j = 0; j < C.width; j++) {
			double want = beta * entry(2, i, j);
			for (size_t l = 0; l < k; l++)
				want += entry(0, i, l) * entry(1, l, j);
			assert_true(C.at[i * C.width + j] == want);
		}
}

typedef struct MatmulSizes {
	size_t m, n, k;
} MatmulSizes;

// multiply matrices stored either way
static void try_matmul(MatmulSizes s, double beta, bool trans_a, bool trans_b)
{
	Cluster *c = cluster_new(2, 2, ELEMENT_NBYTES);
	ClusterArray A = matrix(0, s.m, s.k, trans_a),
		B = matrix(1, s.k, s.n, trans_b),
		C = matrix(2, s.m, s.n, false);
	size_t flops = 2 * s.m * s.n * s.k;
	if (beta == 0)
		C.at[0] = NAN;
	cluster_matmul(c, 2, C, beta, A, trans_a, B, trans_b);
	expect_product(C, beta, s.k);
	for (size_t d = 0; d < 4; d++)
		assert_int_equal(c->flops[d], d == 2 ? flops : 0);
	for (int i = 0; i < 2; i++)
		cluster_matmul(c, 1, (ClusterArray){ NULL, s.m, s.n }, beta,
			(ClusterArray){ NULL, A.rows, A.width }, trans_a,
			(ClusterArray){ NULL, B.rows, B.width }, trans_b);
	assert_int_equal(c->flops[1], 2 * flops);
	assert_int_equal(cluster_flops(c), 2 * flops);
	cluster_reset(c);
	assert_int_equal(cluster_flops(c), 0);
	free(A.at), free(B.at), free(C.at);
	cluster_free(&c);
}

static void matmul_multiplies_and_counts(void **state)
{
	static const MatmulSizes sizes[] = { { 1, 1, 1 }, { 2, 3, 4 }, { 5, 1, 2 },
		{ 1, 4, 3 }, { 4, 4, 4 }, { 3, 2, 1 } };
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (int how = 0; how < 8; how++)
			try_matmul(sizes[i], how >> 2, how & 2, how & 1);
}

// test: costs and results of the layer
static double cost_of(FfnCost cost, int i)
{
	return i == 0 ? cost.flops : cost.nbytes[i - 1];
}

static void expect_costs(const Ffn *f, FfnCost got, FfnCost want)
{
	static const char *const names[] = { "FLOPs", "bytes along X",
		"bytes along Y" };
	for (int i = 0; i < 3; i++)
		if (!(fabs(cost_of(got, i) - cost_of(want, i)) < 1e-6))
			fail_msg("mesh %zu x %zu, layer (%zu, %zu, %zu)%s%s: %g %s, not %g",
				f->X, f->Y, f->B, f->D, f->F, f->gated ? ", gated" : "",
				f->sharded ? ", sharded" : "", cost_of(got, i), names[i],
				cost_of(want, i));
}

// try layouts worked out by hand
static void costs_are_those_worked_by_hand(void **state)
{
	static const struct Known {
		Ffn f;
		FfnCost forward, backward;
	} known[] = {
		{ { 60, 60, 12, true, 4, 1, true }, { 64800, { 3240, 0 } },
			{ 129600, { 6480, 0 } } },
		{ { 60, 60, 12, true, 4, 1, false }, { 64800, { 0, 0 } },
			{ 129600, { 6480, 0 } } },
		{ { 60, 60, 12, false, 4, 1, true }, { 43200, { 2160, 0 } },
			{ 86400, { 4320, 0 } } },
		{ { 60, 60, 12, true, 1, 3, false }, { 86400, { 0, 9600 } },
			{ 172800, { 0, 9600 } } },
		{ { 60, 60, 12, true, 2, 3, true }, { 43200, { 720, 4800 } },
			{ 86400, { 1440, 4800 } } },
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		const Ffn *f = &known[i].f;
		expect_costs(f, ffn_cost(f, FORWARD), known[i].forward);
		expect_costs(f, ffn_cost(f, BACKWARD), known[i].backward);
	}
}

// run layouts, and count them without data
static void try_layout(const Ffn *f)
{
	FfnCost run[PASSES], count[PASSES];
	ffn_run(f, run);
	ffn_count(f, count);
	bool divides = f->B % f->X == 0 && f->D % f->X == 0 && f->F % f->Y == 0
		&& f->B / f->X * f->D % f->Y == 0;
	for (FfnPass pass = FORWARD; pass < PASSES; pass++) {
		FfnCost formula = ffn_cost(f, pass);
		expect_costs(f, run[pass], count[pass]);
		if (divides)
			expect_costs(f, count[pass], formula);
		for (int i = 0; i < 3; i++)
			assert_true(cost_of(count[pass], i) > cost_of(formula, i) - 1e-6);
	}
}

static void layouts_compute_what_one_device_does(void **state)
{
	static const size_t shapes[][3] = { { 60, 60, 12 }, { 7, 5, 9 } };
	for (int s = 0; s < 2; s++)
		for (size_t X = 1; X <= 5; X++)
			for (size_t Y = 1; Y <= 4; Y++)
				for (int how = 0; how < 4; how++) {
					const Ffn f = { shapes[s][0], shapes[s][1], shapes[s][2],
						.gated = how & 1, .X = X, .Y = Y, .sharded = how & 2 };
					try_layout(&f);
				}
}

TESTS(
	cmocka_unit_test(chunks_cover_the_rows),
	cmocka_unit_test(all_gather_completes_arrays),
	cmocka_unit_test(reduce_scatter_leaves_the_own_chunk),
	cmocka_unit_test(all_reduces_agree),
	cmocka_unit_test(bytes_are_those_of_the_formulas),
	cmocka_unit_test(matmul_multiplies_and_counts),
	cmocka_unit_test(costs_are_those_worked_by_hand),
	cmocka_unit_test(layouts_compute_what_one_device_does))
