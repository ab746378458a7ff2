/* dry.h: devices on which allocations count and work is nothing */
#ifndef DEVICE_DRY_H
#define DEVICE_DRY_H

#include "device/backend.h"

extern const Backend dry_cpu_backend, dry_cuda_backend;
/* multiprocessors of the GPU that the second stands for */
enum { DRY_MULTIPROCESSORS = 132 };

#endif
