/* versions of RMSNorm's kernels, against its formulas */
#include "device/cuda/cuda.h"
#include "ops/norm_plan.h"
#include "tests/ops/rmsnorm_reference.h"

static const size_t shapes[][2] = { { 1, 1 }, { 5, 1 }, { 3, 31 }, { 200, 50 },
	{ 100, 64 }, { 33, 200 }, { 17, 1024 }, { 5, 2048 }, { 9, 4096 }, { 3, 8192 },
	{ 3, 10000 }, { 9000, 8 }, { 3000, 50 }, { 1100, 1024 }, { 300, 2560 },
	{ 140, 8192 }, { 2, 151936 }, { 900, 1604 }, { 9, 16392 }, { 70, 33332 },
	{ 5, 65536 } };
enum { NSHAPES = sizeof shapes / sizeof *shapes };
static const Type types[][2] = { { FP32, FP32 }, { FP32, BF16 }, { FP32, FP16 },
	{ BF16, BF16 }, { FP16, FP16 } };
enum { NTYPE_PAIRS = 5 };

// choose types and layouts of a shape
/* whatever the addresses allow */
static bool has_plan(NormVersion v, bool backward, size_t C)
{
	return norm_plan(v, backward, C, 1).threads
		&& norm_plan(v, backward, C, 4).threads
		&& norm_plan(v, backward, C, 8).threads;
}

/* of many elements each pair of types is tried once, else eight times */
static void try_types(NormCase c)
{
	bool many = c.rows * c.C > 50000;
	for (size_t t = 0; t < NTYPE_PAIRS; t++)
		for (size_t i = 0; i < 8; i++) {
			if (many && i != (t + c.forward + 3 * c.backward + c.rows) % 8)
				continue;
			c.x = types[t][0], c.y = types[t][1];
			c.skew = i & 1, c.fresh = i & 2, c.again = i & 4;
			c.apart = i == 3 ? 5 : i == 4 ? 8 : 0;
			c.all = (i + t) % 2;
			follow_the_formulas(&c);
		}
}

// run all shapes by one version
static void version_follows_the_formulas(void **state)
{
	NormVersion v = *(const NormVersion *)*state;
	if (norm_device == NULL)
		skip();
	for (int s = 0; s < NSHAPES; s++) {
		NormCase c = { .rows = shapes[s][0], .C = shapes[s][1] };
		if (getenv("QUICK") && c.rows * c.C > 20000)
			continue;
		c.forward = has_plan(v, false, c.C) ? v : NORM_BY_WIDTH;
		c.backward = has_plan(v, true, c.C) ? v : NORM_BY_WIDTH;
		if (v == NORM_BY_WIDTH || c.forward == v || c.backward == v)
			try_types(c);
	}
}

// run a norm again
static void reruns_give_the_same_bits(void **state)
{
	static const size_t rerun[][2] = { { 5000, 768 }, { 3000, 2560 },
		{ 700, 16384 }, { 300, 65536 } };
	if (norm_device == NULL || getenv("QUICK"))
		skip();
	for (int i = 0; i < 8; i++) {
		NormCase c = { .rows = rerun[i / 2][0], .C = rerun[i / 2][1],
			.x = i % 2 ? BF16 : FP32, .y = BF16, .fresh = true };
		place_norm(&c);
		run_norm(&c);
		Array dx = taken(DX, c.C), dg = taken(DG, c.C), y = taken(Y, c.C);
		for (int run = 0; run < 20; run++) {
			run_norm(&c);
			expect_same("dg", taken(DG, c.C), dg, c.C);
		}
		expect_same("dx", taken(DX, c.C), dx, c.rows * c.C);
		expect_same("y", taken(Y, c.C), y, c.rows * c.C);
		release_norm(NULL);
	}
}

// run more rows than a grid is high
static void rows_exceed_a_grid(void **state)
{
	enum { C = 2 };
	const size_t rows = (size_t)65536 * 512 + 1;
	if (norm_device == NULL || getenv("QUICK"))
		skip();
	const Ops *o = ops_for(norm_device);
	Array x = array_new(norm_device, rows * C, BF16, MEM_TEMPORARY, "ones");
	Array dx = array_new(norm_device, rows * C, BF16, MEM_TEMPORARY, "dx");
	Array g = array_new(norm_device, C, FP32, MEM_TEMPORARY, "gain");
	Array dg = array_new(norm_device, C, FP32, MEM_TEMPORARY, "dg");
	o->fill(norm_device, x, 1, rows * C);
	o->fill(norm_device, g, 1, C);
	o->fill(norm_device, dx, NAN, rows * C);
	o->fused_rmsnorm_backward(norm_device, (NormBackward){ .dsum = dx,
		.fresh = true, .dg = dg, .dy = x, .sum = x, .g = g,
		.eps = NORM_EPSILON, .version = NORM_TWO_READS }, rows, C);
	real got[C], last[C];
	array_read(norm_device, got, dg, C);
	array_read(norm_device, last, array_part(norm_device, dx, (rows - 1) * C), C);
	for (int j = 0; j < C; j++) {
		assert_true(fabs(got[j] / sqrt(1 / (1 + NORM_EPSILON)) - rows)
			<= 1e-5 * rows);
		assert_true(fabs(last[j]) <= 1e-4);
	}
	device_free(norm_device, x.at), device_free(norm_device, dx.at);
	device_free(norm_device, g.at), device_free(norm_device, dg.at);
}

// run a version of each norm
static int open_gpu(void **state)
{
	const char *missing = cuda_backend.why_missing(0);
	if (missing)
		print_message("no GPU, so nothing is tested here: %s\n", missing);
	else
		norm_device = device_open("cuda");
	return 0;
}

static int close_gpu(void **state)
{
	if (norm_device)
		device_close(&norm_device);
	return 0;
}

int main(void)
{
	static const char *const names[] = { CHOICE_NAMES(NORM_VERSIONS_OF) };
	static NormVersion versions[NORM_VERSIONS];
	struct CMUnitTest tests[NORM_VERSIONS + 2] = {
		[NORM_VERSIONS] = cmocka_unit_test_teardown(reruns_give_the_same_bits,
			release_norm),
		cmocka_unit_test(rows_exceed_a_grid) };
	for (int v = 0; v < NORM_VERSIONS; v++) {
		versions[v] = v;
		tests[v] = (struct CMUnitTest){ names[v], version_follows_the_formulas,
			NULL, release_norm, &versions[v] };
	}
	return cmocka_run_group_tests(tests, open_gpu, close_gpu);
}
