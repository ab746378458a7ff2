/* deferral.h: a recorder of operations that are queued later */
#ifndef DEVICE_DEFERRAL_H
#define DEVICE_DEFERRAL_H

#include <stdbool.h>
#include <stddef.h>

struct Elementary;
struct Ops;
/* records operations of the compute queue in place of queueing them */
typedef struct Deferral {
	/* queues all that is recorded; why: what comes next, for explanations */
	void  (*flush)(struct Deferral *self, const char *why);
	/* the caller frees memory at p; true: the deferral frees it later
	 * instead */
	bool  (*frees)(struct Deferral *self, void *p, size_t nbytes);
	/* ops/elementary.h: records one more operation; returns the address of
	 * scratch memory that may never be made; the operations that ops_for
	 * hands out while work is deferred */
	void  (*take)(struct Deferral *self, const struct Elementary *e);
	void *(*scratch)(struct Deferral *self, size_t nbytes, const char *what);
	const struct Ops *ops;
} Deferral;

#endif
