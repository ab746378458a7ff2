/* training.h: models, optimizers and batches as sweeps vary them; their rows */
#ifndef BENCH_TRAINING_H
#define BENCH_TRAINING_H

#include "bench/harness.h"
#include "model/sizes.h"
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
/* how many sizes a sweep takes: on a GPU all, on a CPU NTRAINED */
int      studied_sizes(void);
Shape    scaled_down(Shape s);
/* one of SIZES, on a CPU scaled down; the context is as given */
Shape    studied_shape(int size, long context);
/* the assignment's contexts, the shortest first; on a CPU scaled down */
enum { NCONTEXTS = 4 };
long     studied_context(int which);
long     scaled_context(long context);

/* sets phase_ms, the median, and phase_sd_ms */
void     row_set_time(Row *row, const char *phase, Stats ms);
/* sets the times of forward pass, backward pass and step */
void     row_set_steps(Row *row, const StepStats *s);

#endif
