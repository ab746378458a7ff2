/* outside_calls.h: devices for the calls of other programs */
#ifndef OPS_OUTSIDE_CALLS_H
#define OPS_OUTSIDE_CALLS_H

#include "device/device.h"

// declare a call from outside
typedef enum {
	CALLER_OK,
	CALLER_NO_GPU,          /* no GPU of this number that has kernels */
	CALLER_NO_MEMORY,       /* there is none for scratch */
	CALLER_CAPTURES,        /* the device's own scratch is needed, and the stream
	                         * that uses it now or used it last is captured */
} CallerStatus;

/* a call from outside, between caller_enter and caller_leave */
typedef struct Caller {
	Device *device;
	struct ServedDevice *served;
	bool lent;              /* memory by the caller */
	void *block;            /* the device's, lent to it for this call */
	void *own;              /* the device's stream until then */
	int before;             /* the thread's current GPU, or -1 */
} Caller;

/* memory that a caller gives; get NULL: none */
typedef struct CallerScratch {
	void *(*get)(void *owner, int64_t nbytes);
	void *owner;
} CallerScratch;

/* begins a call: waits until the CPU, or the GPU of this number, is free. Not
 * CALLER_OK: no call began */
CallerStatus caller_enter(Caller *c, bool gpu, int number);
/* what follows is queued on the stream of a GPU, after the work of the calls
 * before that used the device's memory, and may use it. false: it was, or would
 * be, captured into a graph; the call is still to be left */
bool         caller_share(Caller *c, void *stream);
/* what follows is queued on the stream of a GPU, and has nbytes of scratch: the
 * caller's or a
 * share of the device's. Not CALLER_OK: the call is still to be left */
CallerStatus caller_queue(Caller *c, void *stream, CallerScratch scratch,
	size_t nbytes);
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
	[NAME##_CAPTURES] = "a CUDA graph would hold scratch of the library: "   \
		"give a function `scratch`"
/* the text of a status, which may be any number, among n texts */
const char  *caller_text(const char *const *texts, int n, int32_t status);

#endif
