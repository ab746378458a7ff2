/* transports.h: the transports of this build */
#ifndef DIST_TRANSPORTS_H
#define DIST_TRANSPORTS_H

#include "dist/transport.h"

extern const Transport ring_transport, owner_transport, alternate_transport;
/* of dry devices: like all others but push, and like push */
extern const Transport dry_transport, dry_push_transport;
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
