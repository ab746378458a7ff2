/* peaks: what the machine can do: bandwidth, matmuls, launches */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/random.h"
#include "base/stats.h"
#include "bench/harness.h"
#include "bench/timing.h"
#include "cases/fp8_gemm.h"
#include "ops/array.h"

// read the options of the peaks
static long mebibytes, dimension, runs = 21, launches = 1000;
static const Option options[] = {
	{ "mebibytes", OPT_INT, &mebibytes, "1..65536",
		"size of the arrays that are copied" },
	{ "dimension", OPT_INT, &dimension, "1..65536",
		"rows and columns of the matrices" },
	{ "launches", OPT_INT, &launches, "1..100000", "kernels in a queue" },
	RUNS_OPTION(&runs),
	{ 0 }
};

// choose the length of the arrays
static size_t length(const Device *d)
{
	return mebibytes ? (size_t)mebibytes << 18 : copy_length(d);
}

// write a rate, or a time, into the row
/* detail: of what was measured, such as its size */
static void set_figures(Row *row, const char *unit, Stats x, const char *detail)
{
	row_set(row, "value", "%.6g", x.median);
	row_set(row, "unit", "%s", unit);
	row_set(row, "sd", "%.3g", x.sd);
	row_set(row, "min", "%.6g", x.min);
	row_set(row, "max", "%.6g", x.max);
	row_set(row, "runs", "%ld", runs);
	row_set(row, "detail", "%s", detail);
}

/* amount: what one run does, in the unit times a millisecond */
static void set_rate(Row *row, const char *unit, double amount, Timing t,
	const char *detail)
{
	double rate = amount / t.ms;
	set_figures(row, unit, (Stats){ .median = rate, .min = amount / t.max_ms,
		.max = amount / t.min_ms, .sd = rate * t.sd_ms / t.ms }, detail);
}

// measure bandwidths
typedef struct Traffic {
	Device *device;
	Array a, b;
	int32_t *count;
	size_t n;
} Traffic;

static void queue_cast(void *arg)
{
	const Traffic *t = arg;
	ops_for(t->device)->cast(t->device, t->b, t->a, t->n);
}

static void do_memcpy(void *arg)
{
	const Traffic *t = arg;
	device_upload(t->device, t->b.at, t->a.at, t->n * sizeof(float));
}

static void queue_reads(void *arg)
{
	const Traffic *t = arg;
	ops_for(t->device)->count_nonfinite(t->device, t->count, t->a, t->n);
}

static void queue_writes(void *arg)
{
	const Traffic *t = arg;
	ops_for(t->device)->fill(t->device, t->b, 1.5, t->n);
}

// measure a bandwidth and check its work
/* passes: how many arrays are read or written */
static void measure_traffic(Row *row, Work *work, int passes, bool recorded)
{
	Device *d = harness_device();
	size_t n = length(d);
	Traffic t = { d, array_new(d, n, FP32, MEM_TEMPORARY, "array"),
		array_new(d, n, FP32, MEM_TEMPORARY, "other array"),
		device_alloc(d, sizeof *t.count, MEM_TEMPORARY, "count"), n };
	int32_t count = 0;
	char detail[48];
	device_upload(d, t.count, &count, sizeof count);
	draw_repeated(d, t.a, n, harness_seed);
	ops_for(d)->fill(d, t.b, NAN, n);
	Timing timing = recorded ? timed(d, work, &t, (int)runs)
		: timed_calls(d, work, &t, (int)runs);
	// check what the last elements hold
	enum { LAST = 64 };
	real want[LAST], got[LAST];
	size_t at = n - LAST;
	array_read(d, want, array_part(d, t.a, at), LAST);
	array_read(d, got, array_part(d, t.b, at), LAST);
	device_download(d, &count, t.count, sizeof count);
	if (count != 0)
		die("%d numbers of the array are not finite", count);
	for (int i = 0; i < LAST && work != queue_reads; i++)
		if (got[i] != (work == queue_writes ? (real)1.5 : want[i]))
			die("element %zu is %g", at + i, (double)got[i]);
	snprintf(detail, sizeof detail, "%.0f MiB", n * sizeof(float) / 1048576.0);
	set_rate(row, "GB/s", 1e-6 * passes * n * sizeof(float), timing, detail);
}

static void measure_copy(Row *row)
{
	measure_traffic(row, queue_cast, 2, true);
}

static void measure_memcpy(Row *row)
{
	measure_traffic(row, do_memcpy, 2, false);
}

static void measure_read(Row *row)
{
	measure_traffic(row, queue_reads, 1, true);
}

static void measure_write(Row *row)
{
	measure_traffic(row, queue_writes, 1, true);
}

// measure matmuls
/* c = scale a b^T */
typedef struct PeakGemm {
	Device *d;
	Array c, a, b;
	size_t n;
	double scale;
} PeakGemm;

static void queue_matmul(void *arg)
{
	const PeakGemm *p = arg;
	ops_for(p->d)->matmul(p->d, p->c, p->a, p->b, (Matmul){ .m = p->n, .n = p->n,
		.k = p->n, .trans_b = true, .lda = p->n, .ldb = p->n, .ldc = p->n,
		.alpha = 1 });
}

static void check_element(const PeakGemm *p, size_t i, size_t j, Type type)
{
	size_t n = p->n;
	Device *d = p->d;
	real *a = need(malloc(n * sizeof *a)), *b = need(malloc(n * sizeof *b)), c;
	array_read(d, a, array_part(d, p->a, i * n), n);
	array_read(d, b, array_part(d, p->b, j * n), n);
	array_read(d, &c, array_part(d, p->c, i * n + j), 1);
	double sum = 0;
	for (size_t k = 0; k < n; k++)
		sum += p->scale * a[k] * b[k];
	double allowed = (4 * type_spacing(type, 1) + 1e-4) * sqrt(n);
	if (!(fabs(c - sum) <= allowed))
		die("element %zu, %zu of C is %g, not %g", i, j, (double)c,
			sum);
	free(a);
	free(b);
}

static void set_matmul_rate(Row *row, Work *work, void *arg, const PeakGemm *p,
	Type type)
{
	size_t n = p->n;
	char detail[48];
	snprintf(detail, sizeof detail, "%zu x %zu", n, n);
	set_rate(row, "TFLOP/s", 2e-9 * n * n * n,
		timed(p->d, work, arg, (int)runs), detail);
	check_element(p, 0, 0, type);
	check_element(p, n / 2, n / 3, type);
	check_element(p, n - 1, n - 1, type);
}

// measure a matmul by its format
static size_t square(void)
{
	return dimension ? dimension : harness_on_gpu() ? 8192 : 2048;
}

static void measure_matmul(Row *row, Type type)
{
	Device *d = harness_device();
	size_t n = square();
	Type stored = type == TF32 ? FP32 : type;
	PeakGemm p = { d, array_new(d, n * n, stored, MEM_TEMPORARY, "C"),
		array_new(d, n * n, stored, MEM_TEMPORARY, "A"),
		array_new(d, n * n, stored, MEM_TEMPORARY, "B"), n, 1 };
	ops_for(d)->draw(d, p.a, n * n, 1, 4, harness_seed, 1, 0);
	ops_for(d)->draw(d, p.b, n * n, 1, 4, harness_seed, 2, 0);
	ops_for(d)->fill(d, p.c, NAN, n * n);
	p.a.type = p.b.type = type;
	set_matmul_rate(row, queue_matmul, &p, &p, type);
}

static void measure_fp32(Row *row) { measure_matmul(row, FP32); }
static void measure_tf32(Row *row) { measure_matmul(row, TF32); }
static void measure_bf16(Row *row) { measure_matmul(row, BF16); }
static void measure_fp16(Row *row) { measure_matmul(row, FP16); }

// measure a matmul in FP8
static void measure_fp8(Row *row)
{
	Device *d = harness_device();
	Fp8Gemm g = { square(), square(), square() };
	fp8_gemm_new(d, &g, FP8_TENSOR, E4M3, BF16, harness_seed);
	fp8_gemm_cast(&g);
	real left, right;
	array_read(d, &left, g.left.straight.scale, 1);
	array_read(d, &right, g.right.straight.scale, 1);
	PeakGemm p = { d, g.C, g.left.straight.codes, g.right.straight.codes, g.m,
		(double)left * right };
	set_matmul_rate(row, fp8_gemm_multiply, &g, &p, BF16);
	fp8_gemm_free(&g);
}

// measure launches
typedef struct Fills { Device *d; Array a; } Fills;
enum { FEW = 32 };

static void queue_fills(void *arg)
{
	const Fills *q = arg;
	for (long i = 0; i < launches; i++)
		ops_for(q->d)->fill(q->d, q->a, 1 + i, FEW);
}

static void measure_queue(Row *row, bool recorded)
{
	Device *d = harness_device();
	Fills q = { d, array_new(d, FEW, FP32, MEM_TEMPORARY, "few") };
	ops_for(d)->fill(d, q.a, 0, FEW);
	Timing t = recorded ? timed(d, queue_fills, &q, (int)runs)
		: timed_calls(d, queue_fills, &q, (int)runs);
	real last[FEW];
	array_read(d, last, q.a, FEW);
	if (last[0] != launches || last[FEW - 1] != launches)
		die("the last of %ld fills was not done", launches);
	if (recorded && t.kernels != launches)
		die("%d kernels were recorded, not %ld", t.kernels, launches);
	double us = 1e3 / launches;
	char detail[48];
	snprintf(detail, sizeof detail, "%ld fills of %d numbers", launches, FEW);
	set_figures(row, "us", (Stats){ .median = us * t.ms, .min = us * t.min_ms,
		.max = us * t.max_ms, .sd = us * t.sd_ms }, detail);
}

static void measure_launch(Row *row) { measure_queue(row, false); }
static void measure_replay(Row *row) { measure_queue(row, true); }

// list the quantities
typedef struct PeakQuantity {
	const char *quantity;
	bool gpu_only;
	void (*measure)(Row *row);
} PeakQuantity;
static const Key keys[] = { KEY(PeakQuantity, quantity), { 0 } };
static const PeakQuantity quantities[] = {
	{ "copy", false, measure_copy }, { "memcpy", false, measure_memcpy },
	{ "read", false, measure_read }, { "write", false, measure_write },
	{ "fp32", false, measure_fp32 }, { "tf32", true, measure_tf32 },
	{ "bf16", true, measure_bf16 }, { "fp16", true, measure_fp16 },
	{ "fp8", true, measure_fp8 },
	{ "launch", false, measure_launch }, { "replay", true, measure_replay },
};
enum { NQUANTITIES = sizeof quantities / sizeof *quantities };

static void plan(Plan *plan)
{
	for (int i = 0; i < NQUANTITIES; i++)
		if (harness_on_gpu() || !quantities[i].gpu_only)
			plan_add(plan, &quantities[i]);
}

static void run(Row *row, const void *config)
{
	((const PeakQuantity *)config)->measure(row);
}

// describe the experiment of the peaks
const Experiment experiment = {
	.about = "what the machine can do: bandwidth, matmuls, launches",
	.options = options, .cpu_scale = "small (arrays and matrices a quarter as "
		"long; no formats but fp32)",
	.sweeps = SWEEPS(
		{ "peaks", keys, plan, run }),
};
