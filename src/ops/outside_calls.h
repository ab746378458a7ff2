/* outside_calls.h: devices for the calls of other programs */
#ifndef OPS_OUTSIDE_CALLS_H
#define OPS_OUTSIDE_CALLS_H

#include "device/device.h"

// declare a call from outside
typedef enum {
	CALLER_OK,
	CALLER_NO_GPU,          /* no GPU of this number that has kernels */
	CALLER_CAPTURES,        /* the stream, or that of the call before, is
	                         * being captured into a graph */
} CallerStatus;

/* a call from outside, between caller_enter and caller_leave */
typedef struct Caller {
	Device *device;
	struct ServedDevice *served;
	int before;             /* the thread's current GPU, or -1 */
} Caller;

/* begins a call: waits until the CPU, or the GPU of this number, is free. Work is
 * queued on the stream, after that of the call before. Not CALLER_OK: no call
 * began */
CallerStatus caller_enter(Caller *c, bool gpu, int number, void *stream);
/* ends a call, and makes the thread's current GPU again what it was */
void         caller_leave(Caller *c);

// word the statuses that all calls share
/* the texts of statuses that functions of arrays have in common */
#define CALLER_TEXTS(NAME)                                                   \
	[NAME##_OK] = "done",                                                    \
	[NAME##_BAD_TYPE] = "this number format is not supported there",         \
	[NAME##_NULL] = "an array is missing",                                   \
	[NAME##_NO_GPU] = "no GPU of this number, or this build has no kernels", \
	[NAME##_NO_MEMORY] = "there is no memory left for scratch",              \
	[NAME##_CAPTURES] = "the stream, or that of the call before, is being "   \
		"captured into a CUDA graph"
/* the text of a status, which may be any number, among n texts */
const char  *caller_text(const char *const *texts, int n, int32_t status);

#endif
