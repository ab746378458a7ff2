/* model/toy.h: the course's ToyModel: linear, ReLU, layer norm, linear, loss */
#ifndef MODEL_TOY_H
#define MODEL_TOY_H
#include "device/device.h"
#include "model/precision.h"
#include "ops/ops.h"

/* tensors: of the forward and the backward pass, then gradients of parameters */
typedef enum {
	TOY_X, TOY_FC1_W, TOY_GAIN, TOY_SHIFT, TOY_FC2_W,    /* input, parameters */
	TOY_FC1, TOY_RELU, TOY_LN, TOY_LOGITS, TOY_LOSS,     /* forward */
	TOY_DLOGITS, TOY_DLN, TOY_DRELU, TOY_DFC1,           /* backward */
	TOY_DFC2_W, TOY_DGAIN, TOY_DSHIFT, TOY_DFC1_W,       /* of parameters */
	NTOY
} ToyTensor;

extern const char *const toy_names[NTOY];

typedef struct Toy {
	size_t N, in, hidden, classes;      /* rows of a batch; widths of layers */
	const Policy *policy;
	Device *device;
	const Ops *ops;
	Array tensor[NTOY];
	Array mean, rstd, lse;              /* (N) each, fp32 */
	Array loss;                         /* (1) */
	int32_t *targets, *nonfinite;       /* (N), (1) */
} Toy;

Toy   *toy_new(Device *device, const Policy *policy, uint64_t seed);
void   toy_free(Toy **toy);
size_t toy_count(const Toy *toy, ToyTensor which);   /* elements */
double toy_forward(Toy *toy);                        /* returns the mean loss */
void   toy_backward(Toy *toy);
#endif
