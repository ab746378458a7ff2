#include "ops/dry.h"

#include <assert.h>
#include <string.h>

#include "device/dry.h"
#include "ops/cpu/cpu.h"
#include "ops/elementary.h"
#include "ops/norm_blocks.h"

#define OPERATION(TYPE, NAME, PARAMETERS) \
	static TYPE nothing_##NAME PARAMETERS { return (TYPE)0; }
#include "ops/list.h"
#undef OPERATION

static const AttentionKernel no_kernels[] = { { 0 } };

// take a norm's partial sums
static size_t ceil_div(size_t n, size_t by)
{
	return (n + by - 1) / by;
}

static void dry_rmsnorm_backward(Device *d, NormBackward b, size_t rows,
	size_t C)
{
	enum { STRETCH = 512, SHARED = 225 << 10 };
	const size_t chip = DRY_MULTIPROCESSORS, dy = type_size(b.dy.type),
		each = type_size(b.sum.type) * (b.fresh ? 1 : 2) + dy;
	int pack = type_size(b.sum.type) == 2 ? 8 : 4;
	NormPlan plan = norm_plan(b.version, true, C, C % pack ? 1 : pack);
	size_t blocks = ceil_div(rows, STRETCH);
	if (plan.slots > 0) {
		size_t part = (size_t)plan.per * plan.pack * plan.threads;
		size_t ring = norm_slots(&plan, part * each, SHARED)
			* ceil_div(C, plan.blocks) * each;
		size_t most = norm_blocks(&plan, ring, rows, chip) * chip
			/ plan.blocks;
		blocks = ceil_div(rows, ceil_div(rows, most));
	} else if (plan.per > 0) {
		size_t most = norm_blocks(&plan, 0, rows, chip) * chip,
			turns = ceil_div(rows, plan.rows);
		blocks = ceil_div(turns, ceil_div(turns, most));
	}
	Array partial = array_new(d, blocks * C, FP32, MEM_TEMPORARY,
		"norm's gain gradient");
	device_free(d, partial.at);
}

static void dry_elementary(Device *d, const Elementary *e)
{
	enum { SLAB = 2048 };
	if (e->fold != FOLD_COLUMNS)
		return;
	size_t slabs = row_slabs(e->n / e->C, e->C), more = ceil_div(slabs, SLAB);
	Array partial = array_new(d, slabs * e->C, FP32, MEM_TEMPORARY,
		"sums of columns");
	if (more > 1)
		device_free(d, device_alloc(d, more * e->C * sizeof(float),
			MEM_TEMPORARY, "slabs"));
	device_free(d, partial.at);
}

// take the scratch of attention
static bool has_fast_kernels(size_t D)
{
	return D == 16 || D == 32 || D == 64 || D == 80 || D == 128;
}

static bool dry_supports_attention(Device *d, Type type, size_t D)
{
	return has_fast_kernels(D) || D == 96 || D == 256;
}

/* bytes of an array as tiles of split fp16, parts at multiples of 256 bytes */
static size_t split_tiles(size_t heads, size_t n, size_t D)
{
	size_t tiles = heads * ceil_div(n, 64);
	return ceil_div(tiles * 64 * D * 4, 256) * 256
		+ ceil_div(tiles * 4, 256) * 256;
}

static size_t split_fp16_scratch(const Attention *a, const AttentionGradient *g)
{
	size_t heads = a->B * a->H, statistics = heads
		* ceil_div(a->seqlen_q, 64) * 64 * sizeof(float),
		operands = split_tiles(heads, a->seqlen_q, a->D)
			+ 2 * split_tiles(heads, a->seqlen_k, a->D);
	return operands + (g ? split_tiles(heads, a->seqlen_q, a->D) + 2
		* (ceil_div(statistics, 256) * 256) : 0);
}

static size_t dry_attention_scratch(Device *d, const Attention *a,
	const AttentionGradient *g)
{
	Type type = a->q.x.type;
	size_t heads = a->B * a->H, rows = heads * ceil_div(a->seqlen_q, 128) * 128;
	bool fast = has_fast_kernels(a->D);
	if (type == FP32 && fast)
		return split_fp16_scratch(a, g);
	if (g == NULL)
		return 0;
	return type_size(type) == 2 && fast ? (rows * (a->D + 2) + rows / 64 + 1)
		* sizeof(float) : heads * a->seqlen_q * sizeof(float);
}

static void touch_scratch(Device *d, size_t nbytes)
{
	if (nbytes)
		device_free(d, device_alloc(d, nbytes, MEM_TEMPORARY,
			"attention's scratch"));
}

static void dry_attention_forward(Device *d, Attention a)
{
	touch_scratch(d, dry_attention_scratch(d, &a, NULL));
}

static void dry_attention_backward(Device *d, Attention a, AttentionGradient g)
{
	touch_scratch(d, dry_attention_scratch(d, &a, &g));
}

// take the workspaces of matmuls
typedef struct Workspaces {
	void *main, *sides[GEMM_SIDES];
} Workspaces;

static void free_workspaces(Device *d, void *kept)
{
	Workspaces *w = kept;
	device_free(d, w->main);
	for (int i = 0; i < GEMM_SIDES; i++)
		device_free(d, w->sides[i]);
}

static void *new_workspace(Device *d, size_t nbytes)
{
	return device_alloc(d, nbytes, MEM_TEMPORARY, "cuBLASLt workspace");
}

static void dry_matmul(Device *d, Array C, Array A, Array B, Matmul s)
{
	Workspaces *w = device_keep(d, sizeof *w, free_workspaces);
	if (w->main == NULL)
		w->main = new_workspace(d, GEMM_WORKSPACE);
	if (matmul_with_few_calls(s).outer > 1)
		for (int i = 0; i < GEMM_SIDES && w->sides[i] == NULL; i++)
			w->sides[i] = new_workspace(d, GEMM_SIDE_WORKSPACE);
}

// choose the operations of a dry device
static void dry_fp8_matmul(Device *d, Array C, Fp8Matrix A, Fp8Matrix B,
	double beta)
{
	dry_matmul(d, C, A.codes, B.codes, (Matmul){ 0 });
}

static bool dry_reads(Device *d, Type stored, Type wanted)
{
	return stored == wanted || (stored == FP32 && wanted == TF32);
}

static const Ops all_nothing = {
#define OPERATION(TYPE, NAME, PARAMETERS) .NAME = nothing_##NAME,
#include "ops/list.h"
#undef OPERATION
	.attention_kernels = no_kernels,
};

static Ops with_answers_of_cpu(Ops ops)
{
	ops.reads = cpu_reads;
	ops.supports_attention = cpu_supports_attention;
	ops.attention_scratch = cpu_attention_scratch;
	return ops;
}

static Ops with_memory_of_gpu(Ops ops)
{
	ops_by_formulas(&ops);
	ops.elementary = dry_elementary;
	ops.reads = dry_reads;
	ops.matmul = dry_matmul;
	ops.fp8_matmul = dry_fp8_matmul;
	ops.fused_rmsnorm_backward = dry_rmsnorm_backward;
	ops.supports_attention = dry_supports_attention;
	ops.attention_scratch = dry_attention_scratch;
	ops.attention_forward = dry_attention_forward;
	ops.attention_backward = dry_attention_backward;
	return ops;
}

Device *dry_device(const char *like)
{
	static Ops cpu, cuda;
	Device *d = device_open_dry(like);
	cpu = with_answers_of_cpu(all_nothing);
	cuda = with_memory_of_gpu(all_nothing);
	d->ops = d->backend == &dry_cpu_backend ? &cpu : &cuda;
	return d;
}
