/* transport.h: what carries the collectives of comm.h */
#ifndef DIST_TRANSPORT_H
#define DIST_TRANSPORT_H

#include "base/choices.h"
#include "dist/link.h"
#include "ops/array.h"

// name the transports and their settings
/* auto: symmetric between GPUs, or push (CommSettings), else the ring. ring,
 * owner, alternate: over the link, by way of the host's memory; mpi: MPI's
 * own collectives; nccl: NCCL's; symmetric: NCCL's, on arrays of comm_array
 * that lie in its windows; push: copies between the GPUs of one host by
 * their engines */
#define TRANSPORTS_OF(FIRST, NEXT) \
	FIRST(TRANSPORT_AUTO, "auto") NEXT(TRANSPORT_RING, "ring") \
	NEXT(TRANSPORT_OWNER, "owner") NEXT(TRANSPORT_ALTERNATE, "alternate") \
	NEXT(TRANSPORT_MPI, "mpi") NEXT(TRANSPORT_NCCL, "nccl") \
	NEXT(TRANSPORT_SYMMETRIC, "symmetric") NEXT(TRANSPORT_PUSH, "push")
#define TRANSPORTS CHOICES(TRANSPORTS_OF)
enum { CHOICE_IDS(TRANSPORTS_OF) };
extern const char *const transport_names[];

typedef struct CommSettings {
	const char *transport;           /* NULL: auto */
	bool pushes;                     /* auto takes push, where it can work */
	int limit_s;                     /* most time of a collective; 0: 30 s */
	/* thread blocks of NCCL's kernels, 0: NCCL's choice; of the kernels that sum
	 * after pushes, 0: 8 */
	int ctas;
	/* before each collective the queue sleeps for a random time up to this */
	int delay_us;
	/* OPERATION_TEXT bytes in which the rank says what it does, for its parent;
	 * NULL: it tells nobody */
	char *doing;
} CommSettings;

// describe an operation in the queue
typedef enum { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, EXCHANGE, ALL_TO_ALL,
	BROADCAST, SEND, RECEIVE, NCOLLECTIVES } Collective;
extern const char *const collective_names[NCOLLECTIVES];
#define MESSAGES ((uint64_t)1 << 63)
/* bytes in which the memory of a GPU is shared with other processes */
enum { SHARED_UNIT = 2 << 20 };

typedef struct CommOp {
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
} CommOp;

/* "all-reduce 17 (bucket 3, 25 MB)"; the same on all ranks that take part */
enum { OPERATION_TEXT = 96 };
void operation_text(char text[OPERATION_TEXT], const CommOp *op, int rank);

// declare what a transport does
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

// declare transports that work in the host's memory
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
void    host_queue(void *state, const CommOp *op);
bool    host_exchanges(const void *state);

// list the transports of this build
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
