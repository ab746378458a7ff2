/* host_transport.h: transports that work in the host's memory */
#ifndef DIST_HOST_TRANSPORT_H
#define DIST_HOST_TRANSPORT_H

#include "dist/transport.h"

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

#endif
