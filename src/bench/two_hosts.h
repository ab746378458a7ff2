/* two_hosts.h: half of a host's ranks as if they were on another host */
#ifndef BENCH_TWO_HOSTS_H
#define BENCH_TWO_HOSTS_H

#include "base/choices.h"
#include "bench/row.h"

#define HOST_LINKS_OF(FIRST, NEXT) FIRST(SOCKET, "1 socket") \
	NEXT(SOCKETS, "16 sockets") NEXT(WIRE, "1 Gbit/s")
#define HOST_LINKS CHOICES(HOST_LINKS_OF)
typedef enum { CHOICE_IDS(HOST_LINKS_OF) } HostLink;

/* for NCCL, before it is opened: ranks of the row's first half are on one host,
 * the others on another, with a socket or sockets between */
void two_hosts_pretend(const Row *row, HostLink link);

#endif
