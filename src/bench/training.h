/* training.h: models, optimizers and batches as sweeps vary them; their rows */
#ifndef BENCH_TRAINING_H
#define BENCH_TRAINING_H

#include "bench/harness.h"
#include "train/step.h"

/* a row's model; also the first field of larger configurations */
typedef struct ModelConfig {
	int size;                        /* of SIZES */
	long context;
	int precision, fusion;           /* of PRECISIONS, FUSIONS */
	ModelPlan plan;
} ModelConfig;
#define MODEL_KEYS KEY(ModelConfig, size, SIZES), KEY(ModelConfig, context), \
	KEY(ModelConfig, precision, PRECISIONS), KEY(ModelConfig, fusion, FUSIONS)
/* entries of a table of options; TO: the variable that an option sets */
#define SIZE_OPTION(TO)      { "size", OPT_CHOICE, TO, SIZES, "model" }
#define CONTEXT_OPTION(TO) \
	{ "context", OPT_INT, TO, "1..65536", "tokens in a sequence" }
#define BATCH_OPTION(TO)   \
	{ "batch", OPT_INT, TO, "1..4096", "sequences in a batch" }
#define PRECISION_OPTION(TO) \
	{ "precision", OPT_CHOICE, TO, PRECISIONS, "number formats" }
#define FUSION_OPTION(TO)  \
	{ "fusion", OPT_CHOICE, TO, FUSIONS, "path" }
#define WARMUP_OPTION(TO) \
	{ "warmup", OPT_INT, TO, "1..1000", "steps before measuring" }
#define STEPS_OPTION(TO)   { "steps", OPT_INT, TO, "1..1000", "measured steps" }

/* a model as its configuration has it, its optimizer, and a batch of tokens */
typedef struct Training {
	Model *m;
	Optimizer adamw;                     /* all zeros unless with_adamw */
	Batch batch;
} Training;
/* a training on the harness's device; B: sequences in the batch */
Training training_of(const ModelConfig *c, size_t B, bool with_adamw);
/* a training as training_of makes it, on a device that is open already */
Training training_on(Device *device, const ModelConfig *c, size_t B,
	bool with_adamw);
void     training_free(Training *t);

/* sweeps on a CPU divide contexts by SCALE, and widths, depths and vocabulary by
 * half of it */
enum { SCALE = 16 };
#define SCALED "small (widths, depths, vocabulary divided by 8, contexts by 16)"
/* sizes that train on one GPU: all but 10B */
enum { NTRAINED = NSIZES - 1 };
/* how many sizes a sweep takes: on a GPU all, on a CPU NTRAINED */
int      studied_sizes(void);
Shape    scaled_down(Shape s);
/* one of SIZES, on a CPU scaled down; the context is as given */
Shape    studied_shape(int size, long context);

/* sets phase_ms, the median, and phase_sd_ms */
void     row_set_time(Row *row, const char *phase, Stats ms);
/* sets the times of forward pass, backward pass and step */
void     row_set_steps(Row *row, const StepStats *s);

#endif
