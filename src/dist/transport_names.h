/* transport_names.h: all transports, of any build */
#ifndef DIST_TRANSPORT_NAMES_H
#define DIST_TRANSPORT_NAMES_H

#include "base/choices.h"

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

#endif
