#include "ops/dispatch.h"

#include <string.h>

#include "ops/cpu/cpu.h"
#include "ops/elementary.h"
#ifdef HAVE_CUDA
#include "ops/cuda/cuda.h"
#endif

static const Ops cpu_ops = {
#define OPERATION(TYPE, NAME, PARAMETERS) .NAME = cpu_##NAME,
#include "ops/list.h"
#undef OPERATION
	.attention_kernels = cpu_attention_kernels,
};

// choose the operations of a device
const Ops *ops_for(const Device *device)
{
	if (device->deferral)
		return device->deferral->ops;
	if (device->ops)
		return device->ops;
#ifdef HAVE_CUDA
	if (strcmp(device->backend->name, "cuda") == 0)
		return &cuda_ops;
#endif
	return &cpu_ops;
}

// do an elementary operation, or hand it over
void elementary(Device *d, const Elementary *e)
{
	if (d->deferral)
		d->deferral->take(d->deferral, e);
	else
		ops_for(d)->elementary(d, e);
}
