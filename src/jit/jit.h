/* jit.h: elementary operations of a device, recorded, joined and compiled */
#ifndef JIT_JIT_H
#define JIT_JIT_H

#include "ops/ops.h"

/* a group as it is explained to the user */
typedef struct JitGroup {
	int operations;
	const char *shape;              /* flat, held rows, looped rows */
	size_t rows, C;                 /* flat: C is 0, and rows counts elements */
	double bytes_eager, bytes;      /* as in JitCounts */
	const char *why, *source;       /* why it was closed; the kernel's source */
} JitGroup;

typedef struct JitSettings {
	const char *cache;              /* a folder; NULL: nothing is kept on disk */
	/* called with every group before its launch; NULL: not called */
	void (*explain)(void *arg, const JitGroup *group);
	void *arg;
	bool alone;                     /* every operation is a group of its own */
} JitSettings;

typedef struct JitCounts {
	long operations, groups;        /* recorded; done together */
	long kernels;                   /* launched, also outside groups */
	/* bytes that the operations of groups would move one at a time, and that
	 * the groups' kernels move, without partial sums of columns */
	double bytes_eager, bytes;
	long compiled, read;            /* kernels: by the compiler, from disk */
	double compile_ms, load_ms;     /* load_ms: reading and loading */
} JitCounts;

/* makes ops_for(device) return operations that are recorded: those of the eager
 * path and of its optimizers; all others are NULL. False, with a message on
 * standard error: the machine has no compiler */
bool      jit_start(Device *device, JitSettings settings);
/* queues what is recorded; from now on operations are done at once */
void      jit_stop(Device *device);
/* unloads all kernels from memory, as at the start of a program; files stay. No
 * graph that launches one of them may exist */
void      jit_forget(Device *device);
JitCounts jit_counts(Device *device);

#endif
