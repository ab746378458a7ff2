/* transport.h: what carries the collectives of comm.h */
#ifndef DIST_TRANSPORT_H
#define DIST_TRANSPORT_H

#include "dist/link.h"
#include "ops/array.h"

/* auto: symmetric between GPUs, or push (CommSettings), else the ring. ring,
 * owner, alternate: over the link, by way of the host's memory; mpi: MPI's own
 * collectives; nccl: NCCL's; symmetric: the same, with comm_array in its windows;
 * push: copies between the GPUs of one host by their engines */
#define TRANSPORTS "auto|ring|owner|alternate|mpi|nccl|symmetric|push"
extern const char *const transport_names[];

typedef struct CommSettings {
	const char *transport;           /* NULL: auto */
	bool pushes;                     /* auto takes push, where it can work */
	int limit_s;                     /* of a collective; 0: 30 */
	/* of NCCL's kernels, 0: its choice; of those that sum after pushes, 0: 8 */
	int ctas;
	/* before each collective the queue sleeps up to so long, at random */
	int delay_us;
	/* 96 bytes in which the rank says what it does, for its parent; or NULL */
	char *doing;
} CommSettings;

typedef enum { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, EXCHANGE, ALL_TO_ALL,
	BROADCAST, SEND, RECEIVE, NCOLLECTIVES } Collective;
extern const char *const collective_names[NCOLLECTIVES];
#define MESSAGES ((uint64_t)1 << 63)
/* bytes in which the memory of a GPU is shared with other processes */
enum { SHARED_UNIT = 2 << 20 };

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
	/* of exchanges and all-to-alls: where rank 0's array begins; bytes from one
	 * to the next; from the beginning of each to where data arrive */
	char *parts;
	size_t stride, skipped;
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
	/* NULL, or returns NULL: memory of the device's pool will do */
	void *(*alloc)(void *state, size_t nbytes);
	void (*free)(void *state, void *p);
	const char *(*library)(void);    /* and its version; NULL: none */
	bool (*exchanges)(const void *state);        /* NULL: it cannot */
	/* lets the other ranks write to memory of the device's pool, a multiple of
	 * SHARED_UNIT bytes; NULL: nobody does */
	void (*share)(void *state, char *p, size_t nbytes);
	/* collectives are not carried by the link, and wait for a lost rank without
	 * end; closing waits for all ranks */
	bool beside_link;
} Transport;

/* collectives on the memory of the host, as in ring.h; host_open gives the state
 * of a transport that does them in the communication queue */
typedef void HostReduction(Link *link, void *x, size_t n, Type type,
	void *scratch);
typedef struct HostCollectives {
	HostReduction *all_reduce, *reduce_scatter;
	void (*all_gather)(Link *link, void *x, size_t n, Type type);
	void (*broadcast)(Link *link, void *x, size_t nbytes, int root);
} HostCollectives;
void   *host_open(Link *link, Device *device, HostCollectives by);
void    host_close(void *state);
void    host_queue(void *state, const Operation *op);
bool    host_exchanges(const void *state);

extern const Transport ring_transport, owner_transport, alternate_transport;
#ifdef HAVE_MPI
extern const Transport mpi_transport;
#endif
#ifdef HAVE_NCCL
extern const Transport nccl_transport, symmetric_transport;
#endif
#ifdef HAVE_CUDA
extern const Transport push_transport;
#endif

/* ends the program, with the reason, when the one named cannot work */
const Transport *transport_choose(const Link *link, const Device *device,
	const CommSettings *settings);
/* the libraries that this build has, one line, for tables; "" */
const char *transport_libraries(void);

#endif
