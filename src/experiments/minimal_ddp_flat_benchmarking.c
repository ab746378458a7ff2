/* minimal_ddp_flat_benchmarking: gradients summed one at a time, or together; on
 * one node, and over two that one host plays */
#include <stdio.h>

#include "bench/job.h"
#include "bench/two_hosts.h"
#include "cases/ddp_plan.h"
#include "cases/ddp_steps.h"

static DdpGiven given = DDP_GIVEN;
static int only = -1;
static const Option options[] = { DDP_OPTIONS(given),
	{ "kind", OPT_CHOICE, &only, LATE_KINDS,
		"this one only, of the sweep nodes" },
	{ 0 } };

static void plan(Plan *plan)
{
	ddp_given_settle(&given);
	ddp_plan_kinds(plan, &given, DDP_FLAT + 1);
}

// plan naive and flat sums over two nodes
typedef struct NodesConfig {
	DdpConfig ddp;
	int link;                        /* of HOST_LINKS */
} NodesConfig;
static const Key nodes_keys[] = { KEY(NodesConfig, link, HOST_LINKS), DDP_KEYS,
	{ 0 } };

// plan both kinds at each size
static void plan_nodes(Plan *plan)
{
	bool gpu = harness_on_gpu();
	given.warmup = gpu && given.warmup == 0 ? 2 : given.warmup;
	given.steps = gpu && given.steps == 0 ? 3 : given.steps;
	ddp_given_settle(&given);
	for (int s = 0; s < NTRAINED; s++)
		for (int kind = DDP_NAIVE; kind <= DDP_FLAT; kind++) {
			NodesConfig c = { { { s, .precision = gpu ? POLICY_BF16
				: POLICY_FP32 }, .kind = kind, .wire = ddp_wire(&given),
				.transport = gpu ? TRANSPORT_NCCL : TRANSPORT_AUTO },
				gpu ? SOCKETS : WIRE };
			bool wanted = (only < 0 || only == kind) && (gpu || given.size >= 0
				|| s == SIZE_SMALL || s == SIZE_LARGE);
			if (wanted && ddp_settle(&c.ddp, &given))
				plan_add(plan, &c);
		}
}

// run naive and flat sums over two nodes
static bool starts_job(void)
{
	int rank, ranks;
	return !harness_on_gpu() && !link_launched(&rank, &ranks);
}

static int ranks_of(const void *config)
{
	return starts_job() ? 1 : ddp_config_ranks(config);
}

// start a job on two nodes, or train in it
static void run_nodes(Row *row, const void *config)
{
	enum { LIMIT_S = 240 };
	static const char *const sums[] = { CHOICE_NAMES(SUMS_OF) };
	const NodesConfig *c = config;
	if (starts_job()) {
		job_rows(row, c->ddp.ranks, LIMIT_S,
			"bash src/bench/two_nodes.sh --rate 1gbit 1", "--sweep nodes "
			"--size %s --context %ld --batch %ld --fusion %s --transport %s "
			"--kind %s --wire %s --sums %s --warmup %ld --steps %ld",
			model_sizes[c->ddp.model.size].name, c->ddp.model.context,
			c->ddp.batch, fusion_names[c->ddp.model.fusion],
			transport_names[c->ddp.transport], ddp_names[c->ddp.kind],
			type_names[c->ddp.wire], sums[c->ddp.sums], c->ddp.warmup,
			c->ddp.steps);
		return;
	}
	if (harness_on_gpu())
		two_hosts_pretend(row, c->link);
	ddp_case_row(row, config);
}

const Experiment experiment = {
	.about = "times steps that sum gradients one after another, or all at once",
	.options = options, .cpu_scale = SCALED, .sweeps = SWEEPS(
		DDP_SWEEP("kinds", plan),
		{ "nodes", nodes_keys, plan_nodes, run_nodes,
			.ranks = ranks_of, .limit_s = 300 }),
};
