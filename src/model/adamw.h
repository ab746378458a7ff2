/* adamw.h: AdamW over all parameters of a model */
#ifndef MODEL_ADAMW_H
#define MODEL_ADAMW_H

#include "model/model.h"

typedef struct AdamW {
	Array m, v;              /* (count) */
	/* the hyper-parameters and the number of the last step */
	AdamWStep step;
} AdamW;

AdamW adamw_new(Model *model, double lr, double beta1, double beta2, double eps,
	double decay);
void  adamw_step(AdamW *a, Model *model);
void  adamw_free(AdamW *a, Model *model);

#endif
