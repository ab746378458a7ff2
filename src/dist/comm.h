/* comm.h: collectives of a job's ranks on arrays of their devices, queued in one
 * order */
#ifndef DIST_COMM_H
#define DIST_COMM_H

#include "dist/transport.h"
#include "ops/types.h"

// declare the communicator's life
typedef struct Comm Comm;

/* all ranks call it. Ends the program when they do not agree on how many they
 * are. The link is the communicator's from now on */
Comm   *comm_open(Link *link, Device *device, const CommSettings *settings);
void    comm_close(Comm **comm);
int     comm_rank(const Comm *c);
int     comm_ranks(const Comm *c);
/* the transport's name, for tables: "ring", "nccl" */
const char *comm_transport(const Comm *c);
/* bytes that a rank has sent in collectives of this kind, on the average of all
 * ranks and by an algorithm that sends no more than it has to */
double  comm_sent(const Comm *c, Collective kind);

// declare collectives in the communication queue
/* These go to the communication queue, which runs them one after another, and
 * return at once. What the memory needs to hold first, the caller has the queue
 * wait for (device_wait); the event says when the result is there, and until then
 * the memory must stay (device_hold_until). All ranks call the same, in one
 * order, with equal sizes. fp32, bf16, or TYPE_REAL; what and index name the
 * array in messages, and the text must stay */
Event   comm_all_reduce(Comm *c, Array x, size_t n, const char *what, int index);
/* n: elements of all shards (see ring.h). The rank's own shard ends with the sum,
 * the others with anything */
Event   comm_reduce_scatter(Comm *c, Array x, size_t n, const char *what,
	int index);
/* x holds the rank's own shard; the others' shards are filled in */
Event   comm_all_gather(Comm *c, Array x, size_t n, const char *what, int index);
/* x lies in the rank's own array of comm_parts. It arrives in the same place of
 * that array on all ranks, and theirs here. The others' places may be overwritten
 * from when the queue comes to it, and hold the data after the event */
Event   comm_exchange(Comm *c, Array x, size_t n, const char *what, int index);
/* x: n elements, a shard for each rank; `to`: in the rank's own array of
 * comm_parts, room for its shard. Shard j of rank r arrives in this place of
 * array r of rank j, the rank's own too */
Event   comm_all_to_all(Comm *c, Array x, size_t n, Array to, const char *what,
	int index);
Event   comm_broadcast(Comm *c, Array x, size_t n, int root, const char *what,
	int index);
Event   comm_send(Comm *c, Array x, size_t n, int to, const char *what,
	int index);
Event   comm_receive(Comm *c, Array x, size_t n, int from, const char *what,
	int index);

// declare exchanges of values between hosts
/* The host waits in these, until all that was queued is done on all ranks */
void    comm_barrier(Comm *c);
/* all: nbytes for each rank, one after the other; holds the rank's own, and those
 * of the other ranks are filled in */
void    comm_gather_host(Comm *c, void *all, size_t nbytes);
double  comm_sum(Comm *c, double x);
/* NaN on all ranks if x is NaN on any */
double  comm_max(Comm *c, double x);
/* ends the program unless all ranks have queued the same collectives so far */
void    comm_check_order(Comm *c);

// declare arrays for collectives
/* memory that transports use best, for arrays that collectives work on: of the
 * device, and freed with the communicator. All ranks call it, with equal sizes */
Array   comm_array(Comm *c, size_t n, Type type, Category category,
	const char *what);
/* can it exchange? Not with more than MOST_GRADIENTS ranks */
bool    comm_exchanges(const Comm *c);
/* an array of n elements for each rank, in the order of ranks, each as comm_array
 * gives it. Only where comm_exchanges */
Gradients comm_parts(Comm *c, size_t n, Type type, Category category,
	const char *what);

#endif
