/* pytorch_attention: attention as two matmuls and a softmax */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/stats.h"
#include "bench/harness.h"
#include "cases/attention_case.h"
#include "model/precision.h"

// read the options of naive attention
static int precision;
static long batch = 8, length, width, passes;
static const Option options[] = {
	PRECISION_OPTION_FOR(&precision, "number format"),
	BATCH_OPTION_IN(&batch, "1..1024", "sequences, of one head each"),
	LENGTH_OPTION(&length),
	HEAD_SIZE_OPTION(&width),
	{ "passes", OPT_INT, &passes, "1..1000", "of either kind: 100, but 20 of "
		"more than 16384 queries; on a CPU 3" },
	{ 0 }
};

// plan lengths and head sizes
static const long widths[] = { 16, 32, 64, 128 };

typedef struct TorchAttentionConfig {
	int dtype;
	long batch, n, d;
} TorchAttentionConfig;
static const Key keys[] = { KEY(TorchAttentionConfig, dtype, PRECISIONS),
	KEY(TorchAttentionConfig, batch),
	KEY(TorchAttentionConfig, n), KEY(TorchAttentionConfig, d), { 0 } };

static void plan(Plan *plan)
{
	static const long lengths[] = { 256, 1024, 4096, 8192, 16384, 32768, 65536 };
	enum { LENGTHS = sizeof lengths / sizeof *lengths };
	for (int w = 0; w < (width ? 1 : 4); w++)
		for (int i = 0; i < (length ? 1 : LENGTHS); i++)
			plan_add(plan, &(TorchAttentionConfig){ precision, batch,
				length ? length : harness_on_gpu() ? lengths[i]
				: lengths[i] / 16, width ? width : widths[w] });
}

static Device *device_of_case(void)
{
	Device *d = harness_device();
	if (!harness_on_gpu())
		d->limit = (size_t)1 << 28;
	return d;
}

// derive what naive attention holds
/* bytes of one (B, n, D) array, one (B, n, n) matrix, and an elementary step's
 * scratch */
typedef struct AttentionBytes {
	double row, matrix, scratch;
} AttentionBytes;

static AttentionBytes attention_bytes(const Device *d, Type type, double n,
	double D)
{
	double w = d->backend->width(type);
	bool steps = harness_on_gpu();
	return (AttentionBytes){ batch * n * D * w, batch * n * n * w,
		steps ? batch * n * n * 4 : 0 };
}

/* bytes that a forward pass leaves; the most that a backward pass holds */
static double bytes_left(AttentionBytes s)
{
	return 4 * s.row + s.matrix;
}

static double bytes_backward(AttentionBytes s)
{
	return 8 * s.row + 2 * s.matrix + s.scratch;
}

// time passes of naive attention
static long passes_in_time(size_t n)
{
	return passes ? passes : !harness_on_gpu() ? 3 : n > 16384 ? 20 : 100;
}

static Stats timed_passes(Device *d, void (*pass)(void *), AttentionCase *a)
{
	enum { WARMUP = 2 };
	long times = passes_in_time(a->n);
	double *ms = need(malloc(times * sizeof *ms));
	for (long i = -WARMUP; i < times; i++) {
		device_now_ms(d);
		device_stamp(d, COMPUTE, 0);
		pass(a);
		device_stamp(d, COMPUTE, 1);
		if (i >= 0)
			ms[i] = device_stamped_ms(d, 0, 1);
	}
	Stats s = stats_of(ms, (int)times);
	free(ms);
	return s;
}

// set the cells of a pass
/* begins a row: one that fails says in which pass */
static void begin_pass(Row *row, const char *pass)
{
	row_forget(row, 1);
	row_set(row, "pass", "%s", pass);
}

static void set_pass(Row *row, Stats ms, double before, double derived,
	double peak)
{
	row_set(row, "ms", "%.4f", ms.mean);
	row_set(row, "sd_ms", "%.4f", ms.sd);
	row_set(row, "min_ms", "%.4f", ms.min);
	row_set(row, "before_MiB", "%.2f", before / 1048576);
	row_set(row, "derived_MiB", "%.2f", derived / 1048576);
	row_set(row, "peak_MiB", "%.2f", peak / 1048576);
	row_emit(row);
}

// time and check both passes of a shape
static void run(Row *row, const void *config)
{
	const TorchAttentionConfig *c = config;
	Device *d = device_of_case();
	Type type = policies[c->dtype].op[OP_SCORES].input;
	double tolerance = type == BF16 ? 3e-2 : type == FP32 ? 2e-5 : 4e-3;
	begin_pass(row, "forward");
	AttentionCase a = attention_case(d, batch, 1, c->n, c->d, true, type,
		harness_seed);
	AttentionBytes sizes = attention_bytes(d, type, a.n, a.D);
	attention_case_forward(&a);
	attention_case_check(&a, false, tolerance);
	size_t workspace = d->active[MEM_TEMPORARY];
	Stats forward = timed_passes(d, attention_case_forward, &a);
	double left_bytes = d->total - workspace;
	set_pass(row, forward, left_bytes, bytes_left(sizes),
		d->total_peak - workspace);
	begin_pass(row, "backward");
	attention_case_gradients(&a, harness_seed);
	attention_case_backward(&a);
	attention_case_check(&a, true, tolerance);
	set_pass(row, timed_passes(d, attention_case_backward, &a),
		left_bytes, bytes_backward(sizes), d->total_peak - workspace);
	attention_case_free(&a);
}

// list what was allocated before it failed
static Row *failing;
static Device *full;
static AttentionBytes wanted;

/* bytes; NaN: the shapes do not say */
static double derived_of(const char *tensor)
{
	static const char *const matrices[] = { "P", "d attn.softmax" };
	for (int i = 0; i < 2; i++)
		if (strcmp(tensor, matrices[i]) == 0)
			return wanted.matrix;
	if (strstr(tensor, "workspace"))
		return NAN;
	bool scratch = strcmp(tensor, "scores") == 0
		|| strcmp(tensor, "gradient of scores") == 0;
	return scratch ? wanted.scratch : wanted.row;
}

// list a tensor
static void list_tensor(int order, const char *tensor, Category category,
	double nbytes, double total, double free)
{
	row_set(failing, "order", "%d", order);
	row_set(failing, "tensor", "%s", tensor);
	row_set(failing, "category", "%s", category_names[category]);
	row_set(failing, "derived_MiB", isnan(derived_of(tensor)) ? "-" : "%.2f",
		derived_of(tensor) / 1048576);
	row_set(failing, "MiB", "%.2f", nbytes / 1048576);
	row_set(failing, "total_MiB", "%.2f", total / 1048576);
	row_set(failing, "free_MiB", "%.2f", free / 1048576);
	row_emit(failing);
}

// list what is in use and end the row
/* lists what is in use in order of allocation, then what does not fit */
static _Noreturn void list_and_leave(size_t need, size_t have,
	const char *what)
{
	double total = 0;
	int order = 0;
	for (size_t i = 0; i < full->nlog; i++) {
		const MemoryEvent *e = &full->log[i];
		bool freed = false;
		for (size_t j = i + 1; j < full->nlog && e->nbytes > 0; j++)
			freed |= full->log[j].address == e->address
				&& full->log[j].nbytes < 0;
		if (e->nbytes < 0 || freed || e->nbytes < 1 << 20)
			continue;
		total += e->nbytes;
		list_tensor(++order, e->what, e->category, e->nbytes, total,
			full->limit - total);
	}
	list_tensor(++order, what, MEM_TEMPORARY, need, total + need, have);
	row_end(failing);
}

// let a pass run out of memory
static const Key failing_keys[] = { KEY(TorchAttentionConfig, dtype, PRECISIONS),
	KEY(TorchAttentionConfig, batch), KEY(TorchAttentionConfig, d), { 0 } };

static void plan_failing(Plan *plan)
{
	plan_add(plan, &(TorchAttentionConfig){ precision, batch,
		.d = width ? width : 64 });
}

static void run_failing(Row *row, const void *config)
{
	const TorchAttentionConfig *c = config;
	Type type = policies[c->dtype].op[OP_SCORES].input;
	long n = length ? length : 256, D = c->d;
	failing = row;
	full = device_of_case();
	while (!length && bytes_backward(attention_bytes(full, type, n,
		D)) < full->limit)
		n *= 2;
	wanted = attention_bytes(full, type, n, D);
	row_set(row, "n", "%ld", n);
	full->on_oom = list_and_leave;
	device_log_memory(full, true);
	AttentionCase a = attention_case(full, batch, 1, n, D, true, type,
		harness_seed);
	attention_case_forward(&a);
	attention_case_gradients(&a, harness_seed);
	attention_case_backward(&a);
	die("n = %ld fits", n);
}

const Experiment experiment = {
	.about = "attention as two matmuls and a softmax", .options = options,
	.cpu_scale = "small (lengths divided by 16, in 256 MiB)",
	.sweeps = SWEEPS(
		{ "passes", keys, plan, run },
		{ "failing", failing_keys, plan_failing, run_failing }),
};
