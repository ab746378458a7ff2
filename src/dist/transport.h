/* transport.h: what carries the collectives of comm.h */
#ifndef DIST_TRANSPORT_H
#define DIST_TRANSPORT_H

#include "dist/link.h"
#include "ops/array.h"

/* auto: NCCL between GPUs, else the ring. ring, owner: over the link, by way of
 * the host's memory; mpi: MPI's own collectives */
#define TRANSPORTS "auto|ring|owner|alternate|mpi|nccl"

typedef struct CommSettings {
	const char *transport;           /* NULL: auto */
	int limit_s;                     /* of a collective; 0: 30 */
	int ctas;                        /* of NCCL's kernels; 0: NCCL's choice */
	/* before each collective the queue sleeps up to so long, at random */
	int delay_us;
	/* 96 bytes in which the rank says what it does, for its parent; or NULL */
	char *doing;
} CommSettings;

typedef enum { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, SEND, RECEIVE,
	NCOLLECTIVES } Collective;
extern const char *const collective_names[NCOLLECTIVES];
#define MESSAGES ((uint64_t)1 << 63)

typedef struct Operation {
	Collective kind;
	Array x;
	size_t n;
	int peer;                        /* root, destination or source */
	const char *what;
	int index;
	/* of collectives 1, 2, ...; of the messages from one rank to another
	 * MESSAGES + 1, ... */
	uint64_t number;
} Operation;

/* "all-reduce 17 (bucket 3, 25 MB)"; the same on all ranks that take part */
enum { OPERATION_TEXT = 96 };
void operation_text(char text[OPERATION_TEXT], const Operation *op, int rank);

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

/* ends the program, with the reason, when the one named cannot work */
const Transport *transport_choose(const Link *link, const Device *device,
	const char *name);

#endif
