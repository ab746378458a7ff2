#include "cases/ffn.h"
#include "bench/harness.h"

#include <math.h>

#include "base/error.h"

// options of the model and the cluster
static long d_model = 16384, d_ff = 53248, blocks = 126, devices = 64,
	links_x = 2, links_y = 1;
static double device_GB = 95, gpu_GB = 80, TFLOPs = 460, GBps = 180;

static const Option options[] = {
	D_MODEL_OPTION(&d_model, "1..1048576", "width of the model"),
	D_FF_OPTION(&d_ff, "1..1048576", "width of the layer"),
	{ "blocks", OPT_INT, &blocks, "1..100000", "of two linear layers each" },
	{ "gpu-GB", OPT_REAL, &gpu_GB, "GB", "memory of a GPU in (a)" },
	{ "device-GB", OPT_REAL, &device_GB, "GB", "memory of a device in (b)" },
	IDEAL_DEVICES_OPTION(&devices, "1..4096", "of the mesh in (c)"),
	TFLOPS_OPTION(&TFLOPs, "of one device"),
	GBPS_OPTION(&GBps, "of one axis of the torus"),
	{ "links-x", OPT_INT, &links_x, "1..16", "axes that FSDP has: M_X" },
	{ "links-y", OPT_INT, &links_y, "1..16", "axes that TP has: M_Y" },
	{ 0 }
};

// refuse options without sense
enum { MOST_TRIED = 10000000 };        /* devices or tokens, in turn */

static void check_options(void)
{
	const double checked[] = { device_GB, gpu_GB, TFLOPs, GBps };
	for (int i = 0; i < 4; i++)
		if (!(checked[i] >= 1e-9 && checked[i] <= 1e9))
			usage_error("memories and rates: expected 1e-9 to 1e9, not %g",
				checked[i]);
}

// count parameters and what is saved
/* adds up the weights of both layers of one block after another */
static double count_parameters(void)
{
	double sum = 0;
	for (long block = 0; block < blocks; block++) {
		sum += (double)d_model * d_ff;
		sum += (double)d_ff * d_model;
	}
	return sum;
}

static double saved_per_token(void)    /* bytes of both inputs in all blocks */
{
	double sum = 0;
	for (long block = 0; block < blocks; block++) {
		sum += NBYTES * (double)d_model;    /* input of the first */
		sum += NBYTES * (double)d_ff;       /* input of the second */
	}
	return sum;
}

// list what memory holds
typedef struct MemoryItem {
	const char *what;
	double nbytes;                  /* for each parameter */
} MemoryItem;
static const Key item_keys[] = { KEY(MemoryItem, what), { 0 } };
static const MemoryItem items[] = {
	{ "master weights", 4 }, { "gradients", 4 }, { "AdamW's moments", 8 },
	{ "all three", 16 }, { "saved for one token", 0 },
};
enum { ITEMS = sizeof items / sizeof *items };

static void plan_memory(Plan *plan)
{
	check_options();
	for (int i = 0; i < ITEMS; i++)
		plan_add(plan, &items[i]);
}

// set the memory of an item
static void run_memory(Row *row, const void *config)
{
	const MemoryItem *item = config;
	double P = 2.0 * blocks * d_model * d_ff,
		saved = 2.0 * blocks * (d_model + d_ff);
	if (fabs(P - count_parameters()) > 1e-9 * P
		|| fabs(saved - saved_per_token()) > 1e-9 * saved)
		die("%g parameters and %g bytes were counted", count_parameters(),
			saved_per_token());
	double nbytes = item->nbytes ? item->nbytes * P : saved;
	row_set(row, "parameters", "%.0f", P);
	row_set(row, "nbytes", "%.0f", nbytes);
	row_set(row, "GB", "%.6g", nbytes / 1e9);
	row_set(row, "GiB", "%.6g", nbytes / 0x1p30);
	row_set(row, "gpus", "%.0f", ceil(nbytes / (gpu_GB * 1e9)));
}

// find how many devices hold it
typedef struct SequenceConfig { long tokens; } SequenceConfig;
static const Key sequence_keys[] = { KEY(SequenceConfig, tokens), { 0 } };

static void plan_sharded(Plan *plan)
{
	static const long tokens[] = { 0, 1024, 2048, 4096, 8192, 10827, 10828 };
	check_options();
	for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
		plan_add(plan, &(SequenceConfig){ tokens[i] });
}

/* bytes on each of N devices, if half of the saved activations are sharded */
static double device_nbytes(double N, double state, double saved)
{
	return (state + saved / 2) / N + saved / 2;
}

/* sets the least number that is enough, if there is any, and if it was tried */
static void set_tried(Row *row, const char *column, bool any, bool tried,
	double least)
{
	if (tried)
		row_set(row, column, "%.0f", least);
	else
		row_set(row, column, any ? "above %d" : "none", MOST_TRIED);
}

// find how many devices a sequence needs
static void run_sharded(Row *row, const void *config)
{
	double state = 16 * count_parameters(), room = device_GB * 1e9, N = 1,
		saved = saved_per_token() * ((const SequenceConfig *)config)->tokens,
		bound = (state + saved / 2) / (room - saved / 2);
	bool any = saved / 2 < room, tried = any && bound <= MOST_TRIED;
	while (tried && device_nbytes(N, state, saved) >= room)
		N++;
	if (tried && N != floor(bound) + 1)
		die("tried in turn, %g devices are enough, not %g", N, bound);
	row_set(row, "whole_GB", "%.6g", saved / 2 / 1e9);
	set_tried(row, "N", any, tried, N);
	row_set(row, "device_GB", tried ? "%.5g" : "-",
		device_nbytes(N, state, saved) / 1e9);
	row_set(row, "one_less_GB", tried && N > 1 ? "%.5g" : "-",
		device_nbytes(N - 1, state, saved) / 1e9);
}

// find the least batch
typedef struct MeshConfig { long X, Y; } MeshConfig;
static const Key mesh_keys[] = { KEY(MeshConfig, X), KEY(MeshConfig, Y), { 0 } };

static void plan_batch(Plan *plan)
{
	check_options();
	for (long X = 1; X <= devices; X++)
		if (devices % X == 0)
			plan_add(plan, &(MeshConfig){ X, devices / X });
}

// decide whether a batch is large enough
/* part of an array that a collective along X, along Y sends: 1, or (N - 1) / N */
typedef struct RangeShare {
	double x, y;
} RangeShare;

/* whether the forward pass of a batch of B tokens is compute-bound */
static bool is_compute_bound(double B, double X, double Y, RangeShare sent,
	bool overlapped)
{
	double D = d_model, F = d_ff, C = TFLOPs * 1e12, W = GBps * 1e9,
		compute = 4 * B * D * F / (X * Y * C),
		x = sent.x * 4 * D * F / (Y * W * links_x),
		y = sent.y * 4 * B * D / (X * W * links_y);
	return (overlapped ? fmax(x, y) : x + y) <= compute * (1 + 1e-12);
}

// find the least batch by trying
/* sets the least batch that is enough, found by trying; the closed form must
 * agree */
static void find_batch(Row *row, const char *column, double X, double Y,
	RangeShare sent, bool overlapped)
{
	double alpha = TFLOPs * 1e12 / (GBps * 1e9),
		x = sent.x * X * alpha / links_x,       /* needed against FSDP */
		y = sent.y * Y * alpha / links_y / d_ff,    /* TP's over computing */
		bound = overlapped ? x : x / (1 - y), B = 1;
	bool any = overlapped ? y <= 1 + 1e-12 : y < 1,
		tried = any && bound <= MOST_TRIED;
	while (tried && !is_compute_bound(B, X, Y, sent, overlapped))
		B++;
	if (tried && B != fmax(1, ceil(bound * (1 - 1e-12))))
		die("tried in turn, %g tokens are enough, not %g", B, bound);
	set_tried(row, column, any, tried, B);
}

// run one mesh
static void run_batch(Row *row, const void *config)
{
	const MeshConfig *mesh = config;
	double X = mesh->X, Y = mesh->Y;
	const RangeShare whole = { 1, 1 }, ring = { (X - 1) / X, (Y - 1) / Y };
	find_batch(row, "overlapped", X, Y, whole, true);
	find_batch(row, "summed", X, Y, whole, false);
	find_batch(row, "ring_overlapped", X, Y, ring, true);
	find_batch(row, "ring_summed", X, Y, ring, false);
	/* the formulas' bytes are those of an explicit schedule */
	const Ffn f = { 840 * devices, d_model, d_ff, .X = (size_t)X,
		.Y = (size_t)Y, .sharded = true };
	FfnCost formula = ffn_cost(&f, FORWARD), counted[PASSES];
	ffn_count(&f, counted);
	row_set(row, "x_nbytes", "%.10g", formula.nbytes[AXIS_X]);
	row_set(row, "x_counted", "%.10g", counted[FORWARD].nbytes[AXIS_X]);
	row_set(row, "y_nbytes", "%.10g", formula.nbytes[AXIS_Y]);
	row_set(row, "y_counted", "%.10g", counted[FORWARD].nbytes[AXIS_Y]);
	row_set(row, "TFLOPs", "%g", TFLOPs);
	row_set(row, "GBps", "%g", GBps);
	row_set(row, "d_ff", "%ld", d_ff);
	row_set(row, "links_x", "%ld", links_x);
	row_set(row, "links_y", "%ld", links_y);
}

// describe the accounting to the harness
const Experiment experiment = {
	.about = "what a very large model needs of a cluster", .options = options,
	.cpu_scale = CLUSTER_SCALE, .cpu_only = true,
	.sweeps = SWEEPS(
		{ "memory", item_keys, plan_memory, run_memory },
		{ "sharded", sequence_keys, plan_sharded, run_sharded },
		{ "batch", mesh_keys, plan_batch, run_batch }),
};
