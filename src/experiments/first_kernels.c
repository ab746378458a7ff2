/* first_kernels: sums over rows by four kernels; latency and bandwidth of each
 * level of memory */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/stats.h"
#include "bench/harness.h"
#include "bench/timing.h"
#include "cases/first_kernels.h"
#include "ops/array.h"

// read the options of first_kernels
static long width, runs = 21;
static int version = -1;
static const Option options[] = {
	{ "version", OPT_CHOICE, &version, SUM_VERSIONS, "of the sums" },
	WIDTH_OPTION(&width, "4..1048576"),
	RUNS_OPTION(&runs),
	{ 0 }
};

// describe a row of sums
typedef struct SumsConfig { int version; long rows, width; } SumsConfig;
static const Key sum_keys[] = { KEY(SumsConfig, version, SUM_VERSIONS),
	KEY(SumsConfig, rows), KEY(SumsConfig, width), { 0 } };

static void plan_sums(Plan *plan)
{
	static const long widths[] = { 64, 1024, 16384 };
	const long elements = harness_on_gpu() ? 1L << 26 : 1L << 22;
	if (width % 4 != 0)
		usage_error("--width %ld is not a multiple of 4", width);
	for (int v = 0; v < NSUMS; v++)
		for (int w = 0; w < (width ? 1 : 3); w++) {
			long C = width ? width : widths[w];
			if ((version < 0 || v == version)
				&& (v == SUM_LOOP) != harness_on_gpu())
				plan_add(plan, &(SumsConfig){ v, elements / C, C });
		}
}

// sum rows on either device
typedef struct SumsWork { Device *d; int version; SumCase sums; } SumsWork;

static void sum_rows(void *arg)
{
	const SumsWork *w = arg;
	const SumCase *s = &w->sums;
#ifdef HAVE_CUDA
	if (w->version != SUM_LOOP) {
		cuda_sum_rows_by(w->d, w->version, s);
		return;
	}
#endif
	#pragma omp parallel for
	for (size_t i = 0; i < s->rows; i++) {
		float sum = 0;
		#pragma omp simd reduction(+:sum)
		for (size_t j = 0; j < s->C; j++)
			sum += s->x[i * s->C + j];
		s->sums[i] = sum;
	}
}

// check the sums
static double largest_error(Device *d, Array sums, Array x, const SumsConfig *c)
{
	size_t n = (size_t)c->rows * c->width;
	real *got = need(malloc(c->rows * sizeof *got)),
		*from = need(malloc(n * sizeof *from));
	double most = 0;
	array_read(d, got, sums, c->rows);
	array_read(d, from, x, n);
	for (long i = 0; i < c->rows; i++) {
		double sum = 0, size = 0;
		for (long j = 0; j < c->width; j++) {
			sum += from[i * c->width + j];
			size += fabs(from[i * c->width + j]);
		}
		double error = fabs(got[i] - sum);
		if (!(error <= c->width * size / (1 << 24)))
			die("the sum of row %ld is %g, not %g", i, (double)got[i], sum);
		most = fmax(most, error);
	}
	free(got);
	free(from);
	return most;
}

// measure a version of the sums
static void run_sums(Row *row, const void *config)
{
	const SumsConfig *c = config;
	Device *d = harness_device();
	size_t n = (size_t)c->rows * c->width;
	Array x = array_new(d, n, FP32, MEM_TEMPORARY, "rows"),
		sums = array_new(d, c->rows, FP32, MEM_TEMPORARY, "sums");
	ops_for(d)->draw(d, x, n, 1, 4, harness_seed, 1, 0);
	ops_for(d)->fill(d, sums, NAN, c->rows);
	Timing t = timed(d, sum_rows, &(SumsWork){ d, c->version,
		{ sums.at, x.at, c->rows, c->width } }, (int)runs);
	row_set(row, "ms", "%.5f", t.ms);
	row_set(row, "sd_ms", "%.5f", t.sd_ms);
	row_set(row, "GBps", "%.4g", 1e-6 * (n + c->rows) * sizeof(float) / t.ms);
	row_set(row, "max_error", "%.3g", largest_error(d, sums, x, c));
}

// describe a level of memory
typedef struct LevelConfig { int level; long KiB; } LevelConfig;
static const Key level_keys[] = { KEY(LevelConfig, level, LEVELS),
	KEY(LevelConfig, KiB), { 0 } };

static void plan_levels(Plan *plan)
{
	static const long gpu[NLEVELS] = { 32, 64, 1 << 14, 1 << 20 },
		cpu[NLEVELS] = { 0, 16, 256, 1 << 17 };
	for (int level = 0; level < NLEVELS; level++)
		if (harness_on_gpu() || cpu[level])
			plan_add(plan, &(LevelConfig){ level,
				harness_on_gpu() ? gpu[level] : cpu[level] });
}

// make a chain of addresses
/* next (n): the address behind each line's first element, one cycle */
static uint32_t *chain_new(size_t n)
{
	size_t lines = n / LINE;
	uint32_t *next = need(calloc(n, sizeof *next));
	for (size_t i = 0; i < lines; i++)
		next[i * LINE] = (uint32_t)(i * LINE);
	for (size_t i = lines - 1; i > 0; i--) {
		size_t j = (size_t)(random_uniform(harness_seed, 7, i) * i);
		uint32_t kept = next[i * LINE];
		next[i * LINE] = next[j * LINE];
		next[j * LINE] = kept;
	}
	return next;
}

/* the element that `steps` loads reach from `at` */
static uint32_t chain_end(const uint32_t *next, uint32_t at, size_t steps)
{
	for (size_t i = 0; i < steps; i++)
		at = next[at];
	return at;
}

// measure the latency of a level
static size_t steps_of(int level)
{
	return level == LEVEL_MEMORY ? 1 << 14 : 1 << 17;
}

static void chase_on(Device *d, int level, Chase *chase, const uint32_t *next,
	size_t n)
{
	size_t warmup = level == LEVEL_L1 ? n / LINE : 0, steps = steps_of(level);
#ifdef HAVE_CUDA
	if (harness_on_gpu()) {
		cuda_chase(d, level, chase, next, n, warmup, steps);
		return;
	}
#endif
	uint32_t start = chain_end(next, chase->at, warmup);
	double ms = clock_ms();
	chase->at = chain_end(next, start, steps);
	chase->ns = (long long)(1e6 * (clock_ms() - ms));
}

// set the latency of a level
static void measure_latency(Row *row, Device *d, const LevelConfig *c)
{
	size_t n = (size_t)c->KiB << 8, steps = steps_of(c->level);
	uint32_t *chain = chain_new(n), *next = device_alloc(d, n * sizeof *next,
		MEM_TEMPORARY, "chain");
	Chase got = { 0 }, *chase = device_alloc(d, sizeof got, MEM_TEMPORARY,
		"chase");
	double *ns = need(calloc(runs, sizeof *ns)), clocks = 0;
	device_upload(d, next, chain, n * sizeof *next);
	device_upload(d, chase, &got, sizeof got);
	uint32_t end = chain_end(chain, 0, steps
		+ (c->level == LEVEL_L1 ? n / LINE : 0));
	for (long i = -1; i < runs; i++) {
		chase_on(d, c->level, chase, next, n);
		device_download(d, &got, chase, sizeof got);
		if (i < 0 && got.at != end)
			die("the chain ends at %u, not %u", got.at, end);
		else if (i >= 0)
			ns[i] = (double)got.ns / steps;
		clocks = (double)got.clocks / steps;
	}
	// set the columns of the latency
	Stats s = stats_of(ns, (int)runs);
	row_set(row, "latency_ns", "%.4g", s.median);
	row_set(row, "latency_sd_ns", "%.3g", s.sd);
	row_set(row, "latency_clocks", clocks > 0 ? "%.4g" : "-", clocks);
	free(ns);
	free(chain);
	device_free(d, next);
	device_free(d, chase);
}

// measure the bandwidth of a level
#ifdef HAVE_CUDA
typedef struct LevelReads {
	Device *d;
	int level, passes;
	float *sums;
	const float *x;
	size_t n;
} LevelReads;

static void read_level(void *arg)
{
	const LevelReads *r = arg;
	cuda_read_level(r->d, r->level, r->sums, r->x, r->n, r->passes);
}

// check what the threads have read
/* x (blocks, n): small integers, whose sums are exact */
static void check_reads(const LevelReads *r, const real *x)
{
	size_t threads = (size_t)cuda_level_blocks(r->d) * LEVEL_THREADS;
	real *got = need(malloc(threads * sizeof *got));
	array_read(r->d, got, (Array){ r->sums, FP32 }, threads);
	for (size_t i = 0; i < threads; i++) {
		const real *from = x + i / LEVEL_THREADS * r->n;
		real sum = 0;
		for (size_t k = i % LEVEL_THREADS * 4; k < r->n; k += 4 * LEVEL_THREADS)
			sum += from[k] + from[k + 1] + from[k + 2] + from[k + 3];
		if (!(got[i] == sum * r->passes))
			die("thread %zu has read numbers whose sum is %g, not %g", i,
				(double)got[i], (double)(sum * r->passes));
	}
	free(got);
}

// set the bandwidth of a level
static double measure_bandwidth(Device *d, const LevelConfig *c)
{
	static const int passes[NLEVELS] = { 2048, 2048, 1024, 1 };
	size_t n = (size_t)c->KiB << 8, blocks = cuda_level_blocks(d),
		threads = blocks * LEVEL_THREADS, step = 4 * LEVEL_THREADS;
	LevelReads r = { d, c->level, passes[c->level],
		.n = c->level < LEVEL_L2 ? n : n / blocks / step * step };
	n = blocks * r.n;
	real *x = need(malloc(n * sizeof *x));
	for (size_t i = 0; i < n; i++)
		x[i] = random_bits(harness_seed, 3, i) % 4;
	Array from = array_new(d, n, FP32, MEM_TEMPORARY, "read"),
		sums = array_new(d, threads, FP32, MEM_TEMPORARY, "sums");
	array_write(d, from, x, n);
	ops_for(d)->fill(d, sums, NAN, threads);
	r.x = from.at;
	r.sums = sums.at;
	// time the reading and check it
	Timing t = timed(d, read_level, &r, (int)runs);
	check_reads(&r, x);
	free(x);
	device_free(d, from.at);
	device_free(d, sums.at);
	return 4e-6 * r.n * r.passes * blocks / t.ms;
}
#endif

// describe the experiment of the first kernels
static void run_levels(Row *row, const void *config)
{
	const LevelConfig *c = config;
	Device *d = harness_device();
	double GBps = 0;
	measure_latency(row, d, c);
#ifdef HAVE_CUDA
	if (harness_on_gpu())
		GBps = measure_bandwidth(d, c);
#endif
	row_set(row, "GBps", GBps > 0 ? "%.4g" : "-", GBps);
}

const Experiment experiment = {
	.about = "sums over rows by four kernels; each level of memory",
	.options = options, .cpu_scale = "small (a sixteenth of the elements, one "
		"loop; no bandwidths)",
	.sweeps = SWEEPS(
		{ "first_kernels", sum_keys, plan_sums, run_sums },
		{ "levels", level_keys, plan_levels, run_levels }),
};
