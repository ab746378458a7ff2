/* option_rows.h: rows of tables of options that several programs have; TO: the
 * variable that an option sets; RANGE: "1..65536" */
#ifndef BENCH_OPTION_ROWS_H
#define BENCH_OPTION_ROWS_H

#include "base/choices.h"
#include "base/options.h"

// name the options of a model's shape
#define SIZE_OPTION(TO) SIZE_OPTION_FOR(TO, "model")
#define SIZE_OPTION_FOR(TO, HELP) SIZE_OPTION_AS(TO, OPT_CHOICE, SIZES, HELP)
#define SIZE_OPTION_AS(TO, KIND, CHOICES, HELP) \
	{ "size", KIND, TO, CHOICES, HELP }
#define D_MODEL_OPTION(TO, RANGE, HELP) { "d-model", OPT_INT, TO, RANGE, HELP }
#define D_FF_OPTION(TO, RANGE, HELP) { "d-ff", OPT_INT, TO, RANGE, HELP }
#define LAYERS_OPTION(TO, RANGE, HELP) { "layers", OPT_INT, TO, RANGE, HELP }
#define HEADS_OPTION(TO, RANGE, HELP) { "heads", OPT_INT, TO, RANGE, HELP }
#define VOCAB_OPTION(TO, RANGE, HELP) { "vocab", OPT_INT, TO, RANGE, HELP }
#define CONTEXT_OPTION(TO) \
	CONTEXT_OPTION_IN(TO, "1..65536", "tokens in a sequence")
#define CONTEXT_OPTION_IN(TO, RANGE, HELP) { "context", OPT_INT, TO, RANGE, HELP }
#define BATCH_OPTION(TO) BATCH_OPTION_IN(TO, "1..4096", "sequences in a batch")
#define BATCH_OPTION_IN(TO, RANGE, HELP) { "batch", OPT_INT, TO, RANGE, HELP }
/* of attention, and of a norm, by itself */
#define LENGTH_OPTION(TO) LENGTH_OPTION_IN(TO, "1..1048576", "this length only")
#define LENGTH_OPTION_IN(TO, RANGE, HELP) { "n", OPT_INT, TO, RANGE, HELP }
#define HEAD_SIZE_OPTION(TO) { "d", OPT_INT, TO, "1..256", "this head size only" }
#define ROWS_OPTION(TO) \
	{ "rows", OPT_INT, TO, "1..1048576", "rows that are normalised" }
#define WIDTH_OPTION(TO, RANGE) \
	{ "width", OPT_INT, TO, RANGE, "elements of a row: this width only" }

// name the options of a run
#define PRECISION_OPTION(TO) PRECISION_OPTION_FOR(TO, "number formats")
#define PRECISION_OPTION_FOR(TO, HELP) PRECISION_OPTION_OF(TO, PRECISIONS, HELP)
#define PRECISION_OPTION_OF(TO, CHOICES, HELP) \
	PRECISION_OPTION_AS(TO, OPT_CHOICE, CHOICES, HELP)
#define PRECISION_OPTION_AS(TO, KIND, CHOICES, HELP) \
	{ "precision", KIND, TO, CHOICES, HELP }
#define IMPL_OPTION_AS(TO, KIND, CHOICES, HELP) \
	{ "impl", KIND, TO, CHOICES, HELP }
#define FUSION_OPTION(TO) FUSION_OPTION_OF(TO, FUSIONS, "path")
#define FUSION_OR_JIT_OPTION(TO) FUSION_OPTION_OF(TO, FUSIONS_AND_JIT, \
	"eager: one operation after another; fused by hand, or at run time")
#define FUSION_OPTION_OF(TO, CHOICES, HELP) \
	{ "fusion", OPT_CHOICE, TO, CHOICES, HELP }
#define VARIANT_OPTION(TO, CHOICES, HELP) \
	{ "variant", OPT_CHOICE, TO, CHOICES, HELP }
#define ATTENTION_OPTION(TO) \
	{ "attention", OPT_CHOICE, TO, ATTENTIONS, \
		"of the fused path: naive, or FlashAttention" }
#define WARMUP_OPTION(TO) \
	WARMUP_OPTION_IN(TO, "1..1000", "steps before measuring")
#define WARMUP_OPTION_IN(TO, RANGE, HELP) { "warmup", OPT_INT, TO, RANGE, HELP }
#define STEPS_OPTION(TO) STEPS_OPTION_IN(TO, "1..1000", "measured steps")
#define STEPS_OPTION_IN(TO, RANGE, HELP) { "steps", OPT_INT, TO, RANGE, HELP }
#define RUNS_OPTION(TO) RUNS_OPTION_FOR(TO, "measured runs, after a few")
#define RUNS_OPTION_FOR(TO, HELP) { "runs", OPT_INT, TO, "1..1000", HELP }
#define REPEATS_OPTION(TO) \
	{ "repeats", OPT_INT, TO, "1..2000", "passes of each kind" }
#define DEVICE_OPTION(TO) \
	{ "device", OPT_TEXT, TO, DEVICES "|cuda:N", \
		"where to run; auto: on a GPU if there is one" }
#define LIMIT_OPTION(TO, RANGE, HELP) { "limit", OPT_INT, TO, RANGE, HELP }

#define TEXT_OPTION(TO) { "text", OPT_TEXT, TO, "FILE", "what to learn" }
#define SAVE_OPTION(TO, HELP) { "save", OPT_TEXT, TO, "FILE", HELP }
#define TRACE_OPTION(TO, WHAT) \
	{ "trace", OPT_TEXT, TO, "FILE", WHAT " for ui.perfetto.dev" }
#define TABLES_OPTION(TO, WORD, HELP) { "tables", OPT_TEXT, TO, WORD, HELP }

// name the options of ranks
#define RANKS_OPTION(TO) RANKS_OPTION_IN(TO, "1..65536", "processes of a job")
#define RANKS_OPTION_IN(TO, RANGE, HELP) { "ranks", OPT_INT, TO, RANGE, HELP }
#define TRANSPORT_OPTION(TO) \
	TRANSPORT_OPTION_AS(TO, OPT_CHOICE, TRANSPORTS, "what carries collectives")
#define TRANSPORT_OPTION_AS(TO, KIND, CHOICES, HELP) \
	{ "transport", KIND, TO, CHOICES, HELP }
#define WIRE_OPTION(TO, HELP) { "wire", OPT_CHOICE, TO, COMMON_TYPES, HELP }
#define SUMS_OPTION(TO) { "sums", OPT_CHOICE, TO, SUMS, "who sums gradients" }
#define BUCKET_OPTION(TO, HELP) { "bucket-mb", OPT_REAL, TO, "MB", HELP }
#define STRATEGY_OPTION(TO, CHOICES, HELP) \
	{ "strategy", OPT_CHOICE, TO, CHOICES, HELP }
#define UPDATE_OPTION(TO, HELP) { "update", OPT_CHOICE, TO, UPDATES, HELP }
#define IDEAL_DEVICES_OPTION(TO, RANGE, HELP) \
	{ "devices", OPT_INT, TO, RANGE, HELP }
#define TFLOPS_OPTION(TO, HELP) { "TFLOPs", OPT_REAL, TO, "RATE", HELP }
#define GBPS_OPTION(TO, HELP) { "GBps", OPT_REAL, TO, "RATE", HELP }

#endif
