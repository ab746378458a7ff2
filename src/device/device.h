/* device.h: memory with bookkeeping, queues of work and a clock of one device */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include "device/copy.h"
#include "device/graph.h"
#include "device/memory.h"
#include "device/memory_use.h"
#include "device/queue.h"
#include "device/range.h"
#include "device/stamp.h"

// declare how a device is opened
#define DEVICES "auto|cpu|cuda"
/* Opens one of DEVICES, or cuda:N, the GPU of that number; cuda is the first
 * GPU. auto: a GPU if there is one. cuda where there is none: prints why, and
 * opens the CPU. An unknown name, or a number that no GPU has: exit 2. */
Device *device_open(const char *name);
/* A device that counts allocations and does no work; like: "cpu", else a GPU
 * like the H100. Its memory is without end and reads as 0 */
Device *device_open_dry(const char *like);
/* would device_open accept the name on some machine? */
bool    device_named(const char *name);
/* waits for all work, asserts that nothing is in use, frees the device and sets
 * *device to NULL */
void    device_close(Device **device);

#endif
