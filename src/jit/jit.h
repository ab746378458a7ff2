/* jit.h: elementary operations of a device, recorded, joined and compiled */
#ifndef JIT_JIT_H
#define JIT_JIT_H

#include <stdio.h>

#include "ops/ops.h"

typedef struct JitSettings {
	const char *cache;              /* a folder; NULL: nothing is kept on disk */
	FILE *explain;                  /* groups and sources go there; NULL: no */
	bool alone;                     /* every operation is a group of its own */
} JitSettings;

typedef struct JitCounts {
	long operations, groups;        /* recorded; done together */
	long kernels;                   /* one a group, and one a sum of columns */
	/* that the operations of groups move one at a time; that the groups move,
	 * but for partial sums of columns */
	double bytes_eager, bytes;
	long compiled, read;            /* kernels: by the compiler, from disk */
	double compile_ms, load_ms;     /* load_ms: reading and loading */
} JitCounts;

/* from now on ops_for(device) gives operations that are recorded: those of the
 * eager path and of its optimizers; the members of all others are NULL. False
 * where the machine has no compiler, which is said on standard error */
bool      jit_start(Device *device, JitSettings settings);
/* queues what is recorded; operations are done at once again */
void      jit_stop(Device *device);
/* kernels in memory are forgotten, as at the start of a program; those on disk
 * are not. No graph may be left that launches one */
void      jit_forget(Device *device);
JitCounts jit_counts(Device *device);

#endif
