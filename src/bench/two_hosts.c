#define _GNU_SOURCE
#include "bench/two_hosts.h"

#include <stdlib.h>

#include "base/error.h"

static void set(const char *name, const char *value)
{
	if (setenv(name, value, 1) != 0)
		die("setenv: %s", name);
}

void two_hosts_pretend(const Row *row, HostLink link)
{
	set("NCCL_HOSTID", row->rank < row->ranks / 2 ? "node0" : "node1");
	set("NCCL_NET", "Socket");
	set("NCCL_SOCKET_IFNAME", "lo");
	if (link == SOCKETS) {
		set("NCCL_SOCKET_NTHREADS", "4");
		set("NCCL_NSOCKS_PERTHREAD", "4");
	}
}
