/* kernel_counters: what the units of a GPU do while our kernels run */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/process.h"
#include "bench/harness.h"
#include "bench/timing.h"
#include "cases/attention_case.h"
#include "cases/kernel_case.h"
#include "model/sizes.h"
#include "profile/counters.h"

// read the options of kernel counters
static const char *only, *ncu, *device_name = "cuda";
static long least_pct = 5;
static const Option options[] = {
	{ "case", OPT_TEXT, &only, "NAME", "one case, named OPERATION:VARIANT" },
	{ "ncu", OPT_TEXT, &ncu, "FILE",
		"the program that counts, instead of the ncu of PATH or CUDA" },
	{ "least", OPT_INT, &least_pct, "0..100",
		"percent of a case's time that a kernel takes to have a row" },
	{ 0 }
};

// list the cases whose kernels are counted
typedef struct CounterConfig {
	const char *op, *variant;
	Type dtype;
	const char *shape;
	long size[3];      /* heads, n, D; rows, columns, inner; of 2.7B: none */
} CounterConfig;
static const Key keys[] = { KEY(CounterConfig, op), KEY(CounterConfig, variant),
	KEY(CounterConfig, dtype, COMMON_TYPES), KEY(CounterConfig, shape),
	{ 0 } };
#define HEADS16 "16 heads n 16384 D 128", { 16, 16384, 128 }
#define HEAD1 "1 head n 16384 D 128", { 1, 16384, 128 }
#define SHORT1 "1 head n 8192 D 128", { 1, 8192, 128 }
#define STEP "2.7B batch 4 context 512", { 0 }

// name each case
static const CounterConfig cases[] = {
	{ "rmsnorm forward", "fused", BF16, STEP },
	{ "rmsnorm backward", "fused", BF16, STEP },
	{ "softmax forward", "fused", BF16, STEP },
	{ "swiglu forward", "fused", BF16, STEP },
	{ "swiglu backward", "fused", BF16, STEP },
	{ "cross-entropy", "fused", BF16, STEP },
	{ "adamw", "fused", BF16, STEP },
	{ "matmul", "square", BF16, "8192 x 8192 x 8192", { 8192, 8192, 8192 } },
	{ "matmul", "linear", BF16, "2048 x 10240 x 2560", { 2048, 10240, 2560 } },
	{ "attention forward", "simt", BF16, SHORT1 },
	{ "attention forward", "mma_sync", BF16, HEADS16 },
	{ "attention forward", "wgmma", BF16, HEADS16 },
	{ "attention forward", "warp_specialized", BF16, HEADS16 },
	{ "attention forward", "split_fp16", FP32, HEAD1 },
	{ "attention backward", "simt", BF16, SHORT1 },
	{ "attention backward", "mma_sync", BF16, HEADS16 },
	{ "attention backward", "wgmma", BF16, HEADS16 },
	{ "attention backward", "warp_specialized", BF16, HEADS16 },
	{ "attention backward", "warp_specialized-atomic", BF16, HEADS16 },
	{ "attention backward", "split_fp16", FP32, HEAD1 },
};
enum { NCASES = sizeof cases / sizeof *cases };

// find a case by its name
static bool is_named(const CounterConfig *c, const char *name)
{
	size_t n = strlen(c->op);
	return strncmp(name, c->op, n) == 0 && name[n] == ':'
		&& strcmp(name + n + 1, c->variant) == 0;
}

static const CounterConfig *case_named(const char *name)
{
	for (int i = 0; i < NCASES; i++)
		if (is_named(&cases[i], name))
			return &cases[i];
	usage_error("no case is named '%s': expected OPERATION:VARIANT, such as "
		"'attention forward:wgmma'", name);
}

// launch the kernels of a case
enum { LAUNCHES = 3 };

/* once, and then some times inside the range to which ncu listens */
static void launch(Device *d, Work *work, void *arg)
{
	work(arg);
	device_now_ms(d);
	RANGE(d, "counted")
		for (int i = 0; i < LAUNCHES; i++)
			work(arg);
	device_now_ms(d);
}

// launch a kernel of attention
static void launch_attention(Device *d, const CounterConfig *c)
{
	bool backward = strcmp(c->op, "attention backward") == 0;
	AttentionCase a = attention_case(d, 1, c->size[0], c->size[1], c->size[2],
		true, c->dtype, harness_seed);
	if (!attention_case_take(&a, c->variant))
		die("%s has no kernel of %s for this shape", c->variant,
			d->backend->name);
	if (backward) {
		attention_case_gradients(&a, harness_seed);
		attention_case_forward(&a);
	}
	launch(d, backward ? attention_case_backward : attention_case_forward, &a);
	attention_case_free(&a);
}

// launch a matmul
typedef struct CountedGemm {
	Device *device;
	Array c, a, b;
	const long *size;
} CountedGemm;

static void queue_gemm(void *arg)
{
	const CountedGemm *g = arg;
	size_t m = g->size[0], n = g->size[1], k = g->size[2];
	ops_for(g->device)->matmul(g->device, g->c, g->a, g->b, (Matmul){ .m = m,
		.n = n, .k = k, .trans_b = true, .lda = k, .ldb = k, .ldc = n,
		.alpha = 1 });
}

static Array filled_matrix(Device *d, size_t n, int which)
{
	Array x = array_new(d, n, BF16, MEM_TEMPORARY, "matrix");
	ops_for(d)->draw(d, x, n, 1, 4, harness_seed, which, 0);
	return x;
}

static void launch_matmul(Device *d, const CounterConfig *c)
{
	const long *size = c->size;
	CountedGemm g = { d, filled_matrix(d, size[0] * size[1], 1),
		filled_matrix(d, size[0] * size[2], 2),
		filled_matrix(d, size[1] * size[2], 3), size };
	launch(d, queue_gemm, &g);
	device_free(d, g.c.at);
	device_free(d, g.a.at);
	device_free(d, g.b.at);
}

// launch an operation bound by memory
typedef struct CountedOperation {
	Device *device;
	const TimedOperation *op;
	Array set[NARGUMENTS];
	KernelSizes sizes;
} CountedOperation;

static void queue_listed(void *arg)
{
	const CountedOperation *l = arg;
	l->op->queue(l->device, l->set, &l->sizes);
}

static void launch_listed(Device *d, const CounterConfig *c)
{
	CountedOperation l = { .device = d, .op = kernel_operations,
		.sizes = kernel_sizes(
		&model_sizes[SIZE_2_7B].shape, 4, 512, (size_t)1 << 26) };
	while (strcmp(l.op->name, c->op) != 0 || strcmp(l.op->path, c->variant) != 0)
		l.op++;
	kernel_set_new(d, l.set, NULL, l.op, &l.sizes, BF16);
	launch(d, queue_listed, &l);
	kernel_set_free(d, l.set);
}

// run ncu on a process that launches a case
static const char run_ncu[] =
	"export LC_ALL=C PATH=\"$PATH:${CUDA_HOME:-/usr/local/cuda}/bin\"; "
	"timeout 600 %s --csv --page raw --print-units base "
	"--print-kernel-base function --clock-control none "
	"--nvtx --nvtx-include counted/ --section SpeedOfLight "
	"--section ComputeWorkloadAnalysis --section MemoryWorkloadAnalysis "
	"--section MemoryWorkloadAnalysis_Tables --section WarpStateStats "
	"--section Occupancy --section LaunchStats "
	"%s --launch '%s:%s' %s 2>&1";

// collect what a command prints
/* all that the command prints; to be freed */
static char *output_of_command(const char *command, int *status)
{
	FILE *from = need(popen(command, "r"));
	char *said = NULL, part[4096];
	size_t size = 0, n;
	FILE *to = need(open_memstream(&said, &size));
	while ((n = fread(part, 1, sizeof part, from)) > 0)
		fwrite(part, 1, n, to);
	fclose(to);
	int ended = pclose(from);
	*status = WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
	return said;
}

// count the kernels of a case
enum { MOST_KERNELS = 32, NOT_FOUND = 127, TOO_LONG = 124 };

static double total_us(const KernelCounters *kernels, int n)
{
	double us = 0;
	for (int i = 0; i < n; i++)
		us += kernels[i].us;
	return us;
}

static int count(const CounterConfig *c, KernelCounters *kernels)
{
	char *self = process_file(), *words[] = { process_word(ncu ? ncu : "ncu"),
		process_word(self), process_word(device_name) }, *command, why[256];
	int status, n;
	if (asprintf(&command, run_ncu, words[0], words[1], c->op, c->variant,
		words[2]) < 0)
		die("out of host memory");
	char *said = output_of_command(command, &status);
	if (status == NOT_FOUND)
		die("Nsight Compute is needed (ncu, of the package nsight-compute): "
			"there is no '%s'", ncu ? ncu : "ncu");
	if (status == TOO_LONG)
		die("ncu took more than 600 s for %s:%s", c->op, c->variant);
	if (strstr(said, "ERR_NVGPUCTRPERM"))
		die("the driver lets only an administrator read counters "
			"(ERR_NVGPUCTRPERM): run as root, or load the driver with "
			"NVreg_RestrictProfilingToAdminUsers=0");
	n = counters_parse(kernels, MOST_KERNELS, said, why, sizeof why);
	if (n < 0 || status != 0)
		die("%s:%s: %s (ncu ended with %d)", c->op, c->variant,
			n < 0 ? why : "ncu failed", status);
	for (int i = 0; i < 3; i++)
		free(words[i]);
	free(self);
	free(said);
	free(command);
	if (!(total_us(kernels, n) > 0))
		die("ncu told no times");
	return n;
}

// ask for the highest clock
/* the highest clock that the driver allows; NaN: not known */
static double boost_GHz(void)
{
	int status;
	char *said = output_of_command("nvidia-smi --query-gpu=clocks.max.sm "
		"--format=csv,noheader,nounits 2>/dev/null", &status);
	double MHz;
	bool good = status == 0 && sscanf(said, "%lf", &MHz) == 1;
	free(said);
	return good ? MHz / 1e3 : NAN;
}

// plan and run the cases
static bool can_count(void)
{
	return harness_on_gpu() || ncu;
}

// plan the cases
static void plan(Plan *plan)
{
	const CounterConfig *named = only ? case_named(only) : NULL;
	KernelCounters kernels[MOST_KERNELS];
	if (can_count())
		count(named ? named : &cases[0], kernels);
	for (int i = 0; i < NCASES; i++)
		if (named == NULL || named == &cases[i])
			plan_copy(plan, &cases[i], sizeof cases[i]);
}

// set the counters of a kernel
static void set_counter(Row *row, const char *column, double x)
{
	row_set(row, column, isnan(x) ? "-" : "%.5g", x);
}

static void set_kernel(Row *row, const KernelCounters *k, double share)
{
	char column[24];
	row_set(row, "kernel", "%s", k->name);
	row_set(row, "launches", "%d", k->launches);
	row_set(row, "share", "%.4f", share);
	for (int i = 0; i < NCOUNTERS; i++)
		set_counter(row, counter_columns[i], k->values[i]);
	for (int i = 0; i < NSTALLS; i++) {
		bool any = *k->stalls[i].reason != '\0';
		snprintf(column, sizeof column, "stall%d", i + 1);
		row_set(row, column, "%s", any ? k->stalls[i].reason : "-");
		snprintf(column, sizeof column, "stall%d_pct", i + 1);
		set_counter(row, column, any ? k->stalls[i].pct : NAN);
	}
}

// run a case
static void run(Row *row, const void *config)
{
	if (!can_count()) {
		row_skip(row, "only a GPU has these counters");
		return;
	}
	KernelCounters kernels[MOST_KERNELS];
	int n = count(config, kernels);
	double us = total_us(kernels, n);
	set_counter(row, "boost_GHz", boost_GHz());
	for (int i = 0; i < n; i++) {
		if (kernels[i].us * 100 < us * least_pct)
			continue;
		set_kernel(row, &kernels[i], kernels[i].us / us);
		row_emit(row);
	}
}

// describe the experiment of kernel counters
const Experiment experiment = {
	.about = "what the units of a GPU do while our kernels run",
	.options = options, .cpu_scale = "none (counters are a GPU's)",
	.sweeps = SWEEPS(
		{ "kernels", keys, plan, run }),
};

// launch a case, or be an experiment
static int launch_case(const char *name, const char *device)
{
	const CounterConfig *c = case_named(name);
	Device *d = device_open(device);
	if (strncmp(c->op, "attention", strlen("attention")) == 0)
		launch_attention(d, c);
	else if (strcmp(c->op, "matmul") == 0)
		launch_matmul(d, c);
	else
		launch_listed(d, c);
	device_close(&d);
	printf("%s: launched %d times\n", name, LAUNCHES);
	return 0;
}

// choose between a launch and an experiment
int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "--launch") == 0)
		return launch_case(argv[2], argv[3]);
	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], "--device=", strlen("--device=")) == 0)
			device_name = argv[i] + strlen("--device=");
		else if (strcmp(argv[i], "--device") == 0 && i + 1 < argc)
			device_name = argv[i + 1];
	return harness_main(&experiment, argc, argv);
}
