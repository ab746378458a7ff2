/* model/toy.h: the course's ToyModel: linear, ReLU, layer norm, linear, loss */
#ifndef MODEL_TOY_H
#define MODEL_TOY_H
#include "device/device.h"
#include "model/precision.h"
#include "ops/ops.h"

/* tensors: of the forward and the backward pass, then gradients of parameters */
#define TOY_TENSORS_OF(FIRST, NEXT) \
	/* input, parameters */ \
	FIRST(TOY_X, "input") NEXT(TOY_FC1_W, "fc1.weight") \
	NEXT(TOY_GAIN, "ln.weight") NEXT(TOY_SHIFT, "ln.bias") \
	NEXT(TOY_FC2_W, "fc2.weight") \
	/* forward */ \
	NEXT(TOY_FC1, "fc1 output") NEXT(TOY_RELU, "relu output") \
	NEXT(TOY_LN, "ln output") NEXT(TOY_LOGITS, "logits") \
	NEXT(TOY_LOSS, "loss") \
	/* backward */ \
	NEXT(TOY_DLOGITS, "grad of logits") NEXT(TOY_DLN, "grad of ln output") \
	NEXT(TOY_DRELU, "grad of relu output") \
	NEXT(TOY_DFC1, "grad of fc1 output") \
	/* of parameters */ \
	NEXT(TOY_DFC2_W, "grad of fc2.weight") \
	NEXT(TOY_DGAIN, "grad of ln.weight") NEXT(TOY_DSHIFT, "grad of ln.bias") \
	NEXT(TOY_DFC1_W, "grad of fc1.weight")
typedef enum { CHOICE_IDS(TOY_TENSORS_OF) NTOY } ToyTensor;

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
