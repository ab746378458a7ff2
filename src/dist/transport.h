/* transport.h: what carries the collectives of comm.h */
#ifndef DIST_TRANSPORT_H
#define DIST_TRANSPORT_H

#include "dist/comm_op.h"
#include "dist/comm_settings.h"
#include "dist/link.h"
#include "dist/transport_names.h"

// declare what a transport does
/* bytes in which the memory of a GPU is shared with other processes */
enum { SHARED_UNIT = 2 << 20 };
/* bytes that pushes take on a rank: slots for each other rank, and flags */
enum { PUSH_SLOT = 16 << 20, PUSH_SLOTS = 4, PUSH_BOX = PUSH_SLOTS * PUSH_SLOT,
	PUSH_FLAGS = 2 << 20 };
static inline size_t push_arena_nbytes(int ranks)
{
	return (size_t)(ranks - 1) * PUSH_BOX + PUSH_FLAGS;
}

typedef struct Transport {
	const char *name;
	/* NULL: the transport can work there; else the reason why it cannot */
	const char *(*why_unavailable)(const Link *link, const Device *device);
	void *(*open)(Link *link, Device *device, const CommSettings *settings);
	void (*close)(void *state);
	/* puts the operation into the communication queue */
	void (*queue)(void *state, const CommOp *op);
	/* nbytes of memory that the transport likes best. Returns NULL, or is NULL
	 * itself: memory of the device's pool will do */
	void *(*alloc)(void *state, size_t nbytes);
	void (*free)(void *state, void *p);
	const char *(*library)(void);    /* name and version; NULL: it uses none */
	/* does it offer exchanges and all-to-alls? NULL: no */
	bool (*exchanges)(const void *state);
	/* lets the other ranks write to memory of the device's pool, a multiple of
	 * SHARED_UNIT bytes; NULL: the transport needs no such permission */
	void (*share)(void *state, char *p, size_t nbytes);
	/* data go from device to device and not over the link: a collective waits for
	 * a lost rank without end, and closing waits for all ranks */
	bool device_side;
} Transport;

#endif
