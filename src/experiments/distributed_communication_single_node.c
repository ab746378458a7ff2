/* distributed_communication_single_node: collectives of the ranks of a host */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "bench/job.h"
#include "cases/collective_plan.h"

static const char *nccl_tests;
static int only = -1;
static const Option options[] = {
	COLLECTIVE_OPTIONS,
	{ "collective", OPT_CHOICE, &only, COLLECTIVES,
		"this one only, of the sweep collectives" },
	{ "nccl-tests", OPT_TEXT, &nccl_tests, "DIR",
		"folder of all_reduce_perf, or of the build/ that has it" },
	{ 0 }
};

// list transports, and plan their all-reduces
typedef struct CommConfig {
	int collective;
	const char *device, *transport;
	int dtype;
	long ranks;
	double most;                     /* bytes */
} CommConfig;
#define COMMON_KEYS KEY(CommConfig, device), KEY(CommConfig, transport), \
	KEY(CommConfig, dtype, COMMON_TYPES), KEY(CommConfig, ranks)
static const Key keys[] = { COMMON_KEYS, { 0 } },
	collective_keys[] = { KEY(CommConfig, collective, COLLECTIVES), COMMON_KEYS,
	{ 0 } };

// list who can carry a collective
typedef struct Carrier {
	const char *device, *transport;
	int dtypes;                      /* how many of COMMON_TYPES */
	double most;
} Carrier;
static const Carrier carriers[] = {
	{ "cuda", "nccl", 2, 1e9 }, { "cuda", "nccl-tests", 2, 1e9 },
	{ "cuda", "nccl-tests-mpi", 2, 1e9 },
	{ "cuda", "symmetric", 2, 1e9 }, { "cuda", "push", 2, 1e9 },
	{ "cuda", "ring", 1, 1e9 }, { "cuda", "gloo", 1, 1e9 },
	{ "cpu", "mpi", 1, 1e9 }, { "cpu", "gloo", 1, 1e9 },
	{ "cpu", "ring", 2, 1e9 }, { "cpu", "owner", 1, 100e6 },
	{ "cpu", "alternate", 1, 100e6 },
};
enum { NCARRIERS = sizeof carriers / sizeof *carriers };

static bool is_cuda(const char *device)
{
	return strcmp(device, "cuda") == 0;
}

static bool is_nccl_tests(const char *transport)
{
	return strncmp(transport, "nccl-tests", strlen("nccl-tests")) == 0;
}

static bool is_possible(const Carrier *c)
{
	if (is_cuda(c->device) && !harness_on_gpu())
		return false;
	if (is_nccl_tests(c->transport))
		return nccl_tests != NULL;
	return strcmp(c->transport, "gloo") == 0
		|| options_choice(TRANSPORTS, c->transport) >= 0;
}

// plan the configurations of a carrier
/* how many numbers of ranks are tried; six ranks share GPUs, which only Gloo
 * can */
static int counts_of(const Carrier *c)
{
	bool all = collective_wish.full || harness_on_gpu();
	return all && (!is_cuda(c->device) || strcmp(c->transport, "gloo") == 0)
		? 3 : 2;
}

/* returns how many configurations */
static int plan_carrier(Plan *plan, int collective, const Carrier *c)
{
	long asked = collective_wish.ranks;
	int n = 0;
	for (int dtype = 0; dtype < c->dtypes; dtype++)
		for (int i = 1; i <= (asked ? 1 : counts_of(c)); i++) {
			long ranks = asked ? asked : 2 * i;
			if (!collective_wanted(c->transport, dtype, ranks))
				continue;
			plan_add(plan, &(CommConfig){ collective, c->device, c->transport,
				dtype, ranks, c->most });
			n++;
		}
	return n;
}

static void plan_device(Plan *plan, const char *device)
{
	int n = 0;
	for (int i = 0; i < NCARRIERS; i++)
		if (strcmp(carriers[i].device, device) == 0 && is_possible(&carriers[i]))
			n += plan_carrier(plan, ALL_REDUCES, &carriers[i]);
	collective_expect(n);
}

// plan all-reduces on GPUs and on the host
static void plan_all_reduces(Plan *plan)
{
	plan_device(plan, harness_on_gpu() ? "cuda" : "cpu");
}

static void plan_hosts(Plan *plan)
{
	if (harness_on_gpu())
		plan_device(plan, "cpu");
	else
		plan_add(plan, &(CommConfig){ ALL_REDUCES, "cpu", "ring", FP32, 2, 0 });
}

// plan the other collectives
static void plan_collectives(Plan *plan)
{
	int n = 0;
	for (int what = REDUCE_SCATTERS; what <= BROADCASTS; what++) {
		if (only >= 0 && only != what)
			continue;
		n += plan_carrier(plan, what, &(Carrier){ "cpu", "ring", 1, 100e6 });
		if (harness_on_gpu())
			n += plan_carrier(plan, what, &(Carrier){ "cuda", "nccl", 1, 1e9 });
	}
	collective_expect(n);
}

// run a transport or a peer
static bool is_peer(const CommConfig *c)
{
	if (strcmp(c->transport, "mpi") == 0)
		return !collective_in_job();
	return strcmp(c->transport, "gloo") == 0
		|| is_nccl_tests(c->transport)
		|| (harness_on_gpu() && !is_cuda(c->device));
}

static int ranks_of(const void *config)
{
	return is_peer(config) ? 1 : (int)((const CommConfig *)config)->ranks;
}

// start this program again for a row
static void run_again(Row *row, const CommConfig *c, const PeerCase *peer)
{
	char launcher[1024] = "", arguments[96];
	if (strcmp(c->transport, "mpi") == 0)
		snprintf(launcher, sizeof launcher, MPIRUN " --bind-to none -n %ld",
			c->ranks);
	if (c->collective == ALL_REDUCES)
		snprintf(arguments, sizeof arguments, "--transport %s", c->transport);
	else
		snprintf(arguments, sizeof arguments, "--transport %s --sweep "
			"collectives --collective %s", c->transport,
			collective_name(c->collective));
	collective_job_rows(row, peer, launcher, arguments);
}

// run a transport, or start a peer
static void run(Row *row, const void *config)
{
	const CommConfig *c = config;
	if (!is_peer(c)) {
		collective_run(row, c->collective, c->transport, c->dtype, c->most);
		return;
	}
	long sizes[MOST_SIZES];
	PeerCase peer = collective_peer_case(c->device, c->dtype, c->ranks, c->most,
		sizes);
	if (strcmp(c->transport, "gloo") == 0)
		gloo_rows(row, &peer);
	else if (is_nccl_tests(c->transport))
		nccl_tests_rows(row, &peer, nccl_tests,
			strcmp(c->transport, "nccl-tests") != 0);
	else
		run_again(row, c, &peer);
}

// describe the collectives to the harness
static void run_hosts(Row *row, const void *config)
{
	if (harness_on_gpu())
		run(row, config);
	else
		row_skip(row, "without GPUs the sweep all_reduce has these arrays");
}

static bool full_scale(void)
{
	return collective_wish.full;
}

// name the sweeps of collectives
const Experiment experiment = {
	.about = "collectives of the ranks of one host", .options = options,
	.cpu_scale = "small (arrays up to 10 MB, two and four ranks)",
	.full_scale = full_scale,
	.sweeps = SWEEPS(
		{ "all_reduce", keys, plan_all_reduces, run,
			.ranks = ranks_of },
		{ "hosts", keys, plan_hosts, run_hosts,
			.ranks = ranks_of },
		{ "collectives", collective_keys, plan_collectives, run,
			.ranks = ranks_of }),
};
