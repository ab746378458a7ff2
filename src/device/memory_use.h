/* memory_use.h: how the memory of a device is used: peaks, blocks, a log */
#ifndef DEVICE_MEMORY_USE_H
#define DEVICE_MEMORY_USE_H

#include "device/state.h"

/* peaks start anew from what is in use now */
void    device_reset_peak(Device *device);
typedef struct DeviceBlock {
	void *at;
	size_t nbytes;
	const char *what;       /* the tensor that it was last allocated for */
	bool used;              /* false: it is free, and stays in the pool */
} DeviceBlock;
/* calls visit(arg, block) for each block of the pool */
void    device_blocks(const Device *device,
	void (*visit)(void *arg, const DeviceBlock *block), void *arg);
/* switches the log of allocations and releases on or off */
void    device_log_memory(Device *device, bool on);

#endif
