/* transport.h: what carries collectives; behind comm.h */
#ifndef DIST_TRANSPORT_H
#define DIST_TRANSPORT_H

#include "dist/comm.h"

typedef enum { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, SEND, RECEIVE,
	NCOLLECTIVES } Collective;
extern const char *const collective_names[NCOLLECTIVES];

typedef struct Operation {
	Collective kind;
	Array x;
	size_t n;
	int peer;                        /* root, destination or source */
	const char *what;
	int index;
	/* of collectives 1, 2, ...; of the messages from one rank to another the
	 * same with the highest bit set */
	uint64_t number;
} Operation;

/* "all-reduce 17 (bucket 3, 25 MB)" */
enum { OPERATION_TEXT = 96 };
void operation_text(char text[OPERATION_TEXT], const Operation *op);

typedef struct Transport {
	const char *name;
	/* NULL when it can work there, else why not */
	const char *(*missing)(const Link *link, const Device *device);
	void *(*open)(Link *link, Device *device, const CommSettings *settings);
	void (*close)(void *state);
	/* puts the operation into the communication queue */
	void (*queue)(void *state, const Operation *op);
	/* NULL: memory of the device's pool will do */
	void *(*alloc)(void *state, size_t nbytes);
	void (*free)(void *state, void *p);
	const char *(*library)(void *state);         /* NULL: none */
} Transport;

extern const Transport ring_transport, owner_transport, alternate_transport;
#ifdef HAVE_MPI
extern const Transport mpi_transport;
#endif
#ifdef HAVE_NCCL
extern const Transport nccl_transport;
#endif

#endif
