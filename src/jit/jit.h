/* jit.h: elementary operations of a device, recorded, joined and compiled */
#ifndef JIT_JIT_H
#define JIT_JIT_H

#include "ops/ops.h"

/* what became of a group */
typedef struct JitGroup {
	int operations;
	const char *shape;              /* flat, held rows, looped rows */
	size_t rows, C;                 /* flat: C is 0, and rows counts elements */
	double bytes_eager, bytes;      /* as in JitCounts */
	const char *why, *source;       /* why it was closed; its kernel's */
} JitGroup;

typedef struct JitSettings {
	const char *cache;              /* a folder; NULL: nothing is kept on disk */
	/* is told of every group before it is launched; NULL: nobody */
	void (*explain)(void *arg, const JitGroup *group);
	void *arg;
	bool alone;                     /* every operation is a group of its own */
} JitSettings;

typedef struct JitCounts {
	long operations, groups;        /* recorded; done together */
	long kernels;                   /* also of operations in no group */
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
