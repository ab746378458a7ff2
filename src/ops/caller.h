/* caller.h: devices for the calls of other programs */
#ifndef OPS_CALLER_H
#define OPS_CALLER_H

#include "device/device.h"

/* the current GPU, or the CPU; NULL: there is none */
Device *caller_device(bool gpu);
/* queues what follows on the caller's stream; returns the one before */
void   *caller_stream(Device *d, void *stream);

#endif
