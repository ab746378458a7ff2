#define _GNU_SOURCE
/* distributed_communication_multi_node: all-reduces between two nodes, of which
 * one host plays both */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bench/two_hosts.h"
#include "cases/collective_plan.h"

static const Option options[] = { COLLECTIVE_OPTIONS, { 0 } };

// plan two nodes
enum { NODES = 2 };

typedef struct TwoNodesConfig {
	int link;                        /* of HOST_LINKS */
	const char *device, *transport;
	int dtype;
	long nodes, ranks;               /* of both nodes */
} TwoNodesConfig;
static const Key keys[] = { KEY(TwoNodesConfig, link, HOST_LINKS),
	KEY(TwoNodesConfig, device),
	KEY(TwoNodesConfig, transport), KEY(TwoNodesConfig, dtype, COMMON_TYPES),
	KEY(TwoNodesConfig, nodes), KEY(TwoNodesConfig, ranks), { 0 } };

static double most_bytes(const TwoNodesConfig *c)
{
	return c->link == WIRE ? 10e6 : c->link == SOCKET ? 100e6 : 1e9;
}

static int plan_ranks(Plan *plan, HostLink link, const char *device,
	const char *transport, long most)
{
	int n = 0;
	for (long ranks = NODES; ranks <= most; ranks *= 2)
		if (collective_wanted(transport, FP32, ranks)) {
			plan_add(plan, &(TwoNodesConfig){ link, device, transport, FP32,
				NODES, ranks });
			n++;
		}
	return n;
}

// plan the links of a device
static void plan(Plan *plan)
{
	int n = 0;
	if (harness_on_gpu())
		n = plan_ranks(plan, SOCKET, "cuda", "nccl", 4)
			+ plan_ranks(plan, SOCKETS, "cuda", "nccl", 4);
	else
		n = plan_ranks(plan, WIRE, "cpu", "ring", 8)
			+ plan_ranks(plan, WIRE, "cpu", "mpi", 8);
	collective_expect(n);
}

// run on two nodes
static bool is_peer(const TwoNodesConfig *c)
{
	return strcmp(c->device, "cpu") == 0 && !collective_in_job();
}

static int ranks_of(const void *config)
{
	return is_peer(config) ? 1 : (int)((const TwoNodesConfig *)config)->ranks;
}

static void run(Row *row, const void *config)
{
	const TwoNodesConfig *c = config;
	if (!is_peer(c)) {
		if (strcmp(c->transport, "nccl") == 0)
			two_hosts_pretend(row, c->link);
		collective_run(row, ALL_REDUCES, c->transport, c->dtype, most_bytes(c));
		return;
	}
	char launcher[64], arguments[64];
	long sizes[MOST_SIZES];
	PeerCase peer = collective_peer_case(c->device, c->dtype, c->ranks,
		most_bytes(c), sizes);
	snprintf(launcher, sizeof launcher,
		"bash src/bench/two_nodes.sh --rate 1gbit %ld", c->ranks / NODES);
	snprintf(arguments, sizeof arguments, "--transport %s", c->transport);
	collective_job_rows(row, &peer, launcher, arguments);
}

// describe two nodes to the harness
const Experiment experiment = {
	.about = "all-reduces between two nodes that one host plays",
	.options = options,
	.cpu_scale = "small (arrays up to 10 MB, a link of 1 Gbit/s)",
	.sweeps = SWEEPS(
		{ "all_reduce", keys, plan, run, .ranks = ranks_of }),
};
