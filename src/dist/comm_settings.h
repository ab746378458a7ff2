/* comm_settings.h: the names of the transports, and their settings */
#ifndef DIST_COMM_SETTINGS_H
#define DIST_COMM_SETTINGS_H

#include <stdbool.h>

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

#endif
