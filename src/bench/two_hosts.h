/* two_hosts.h: half of a host's ranks as if they were on another host */
#ifndef BENCH_TWO_HOSTS_H
#define BENCH_TWO_HOSTS_H

#include "bench/row.h"

typedef enum { SOCKET, SOCKETS, WIRE } HostLink;
#define HOST_LINKS "1 socket|16 sockets|1 Gbit/s"

/* for NCCL, before it is opened: ranks of the row's first half are on one host,
 * the others on another, with a socket or sockets between */
void two_hosts_pretend(const Row *row, HostLink link);

#endif
