/* dispatch.h: the operations of a device, a function for each */
#ifndef OPS_DISPATCH_H
#define OPS_DISPATCH_H

#include "ops/types.h"

/* a function for each operation of ops/list.h */
typedef struct Ops {
#define OPERATION(TYPE, NAME, PARAMETERS) TYPE (*NAME) PARAMETERS;
#include "ops/list.h"
#undef OPERATION
	/* the kernels of attention, the simplest first; attention_forward and
	 * attention_backward take the last one that can do what is asked */
	const AttentionKernel *attention_kernels;
} Ops;

const Ops *ops_for(const Device *device);
/* does the operation now, or hands it to the device's deferral */
void elementary(Device *d, const struct Elementary *e);

#endif
