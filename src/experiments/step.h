/* step.h: what a row of a table trains */
#ifndef EXPERIMENTS_STEP_H
#define EXPERIMENTS_STEP_H

#include "experiments/harness.h"
#include "train/step.h"

/* sets phase_ms, the median, and phase_sd_ms */
void     row_set_time(Row *row, const char *phase, Stats ms);

/* a model, its optimizer, and a batch, of a row's size, context, precision and
 * path */
typedef struct Training {
	Model *m;
	Optimizer adamw;                 /* if it was asked for */
	Batch batch;
} Training;
Training training_of(const Row *row, size_t B, bool with_adamw);
void     training_free(Training *t);

/* sweeps on a CPU divide contexts by it, and widths, depths and vocabulary by
 * half of it */
enum { SCALE = 16 };
#define SCALED "small (widths, depths, vocabulary divided by 8, contexts by 16)"
/* sizes that train on one GPU: all but 10B */
enum { NTRAINED = NSIZES - 1 };
/* sizes that a sweep takes: on a GPU all, on a CPU NTRAINED */
int      studied_sizes(void);
Shape    scaled_down(Shape s);
/* of the row's size and context; on a CPU scaled down */
Shape    row_shape(const Row *row);
#endif
