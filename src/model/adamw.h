/* adamw.h: AdamW over all parameters of a model */
#ifndef MODEL_ADAMW_H
#define MODEL_ADAMW_H

#include "model/model.h"

typedef struct AdamWSettings {
	double lr, beta1, beta2, eps, decay;
	long t;                  /* number of the last step; 1 is the first */
} AdamWSettings;

typedef struct AdamW {
	Array m, v;              /* (count) */
	AdamWSettings step;
	AdamWStep *scalars;      /* of the last step, on the device */
	long good;               /* steps since the loss scale changed */
} AdamW;

AdamW adamw_new(Model *model, double lr, double beta1, double beta2, double eps,
	double decay);
void  adamw_free(AdamW *a, Model *model);
/* all three of the next */
void  adamw_step(AdamW *a, Model *model);
/* brings the scalars of the next step to the device */
void  adamw_begin(AdamW *a, Model *model);
/* queues the update; skips it when model->nonfinite is set */
void  adamw_apply(const AdamW *a, Model *model);
/* under fp16: waits, adapts the loss scale */
void  adamw_finish(AdamW *a, Model *model);
/* what the kernels need to know of a step */
AdamWStep adamw_scalars(const AdamWSettings *settings, double unscale);

#endif
