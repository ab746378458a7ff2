#define _GNU_SOURCE
/* several_nodes: training steps over nodes that one host plays, at the rates of
 * slow links, predicted and measured */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/process.h"
#include "base/table_reader.h"
#include "bench/training.h"
#include "cases/cost_validation.h"

// options and rows of several nodes
static int size = -1;
static const char *folder = "tables/cpu";
static long asked_nodes;
static double asked_Gbps;
static const Option options[] = {
	TABLES_OPTION(&folder, "FOLDER",
		"of this host: constants of the model"),
	SIZE_OPTION_FOR(&size, "of the model; else medium"),
	{ "nodes", OPT_INT, &asked_nodes, "2..9",
		"so many; the link has 0.25 Gbit/s unless --Gbps is given" },
	{ "Gbps", OPT_REAL, &asked_Gbps, "RATE",
		"of the link; two nodes unless --nodes is given" },
	{ 0 }
};

// describe a row of several nodes
/* a strategy, as the model and as the program that times it has it */
#define STATE_TIMES "optimizer_state_sharding_accounting", \
	"--sweep times --strategy "
#define OVER_NODES_OF(FIRST, NEXT) \
	FIRST(OVER_DDP, "ddp", COST_BUCKETED, STATE_TIMES "ddp") \
	NEXT(OVER_SHARDED, "sharded", COST_SHARDED, STATE_TIMES "sharded") \
	NEXT(OVER_ZERO1, "zero1", COST_ZERO1, STATE_TIMES "zero1") \
	NEXT(OVER_FSDP, "fsdp", COST_FSDP, "fsdp_accounting", \
		"--strategy fsdp --prefetch 1")
#define OVER_NODES CHOICES(OVER_NODES_OF)
enum { CHOICE_IDS(OVER_NODES_OF) NOVER_NODES };
typedef struct OverNodesConfig {
	long nodes;
	double Gbps;                     /* of the link, each way */
	int strategy;                    /* of OVER_NODES */
} OverNodesConfig;
typedef struct BucketConfig {
	OverNodesConfig link;                     /* first: its keys are ours */
	double bucket_mb;
} BucketConfig;
#define LINK_KEYS KEY(OverNodesConfig, nodes), KEY(OverNodesConfig, Gbps, "%g")
static const Key keys[] = { LINK_KEYS, KEY(OverNodesConfig, strategy, OVER_NODES),
	{ 0 } }, bucket_keys[] = { LINK_KEYS, KEY(BucketConfig, bucket_mb, "%g"),
	{ 0 } };

// plan steps and buckets over links
static void check_rate(void)
{
	if (asked_Gbps != 0 && !(asked_Gbps >= 0.01 && asked_Gbps <= 1000))
		usage_error("--Gbps %g: expected 0.01 to 1000", asked_Gbps);
}

static void plan_buckets(Plan *plan)
{
	static const double sizes_mb[] = { 0.01, 0.05, 0.1, 0.5, 1, 5, 10 };
	check_rate();
	for (size_t i = 0; i < sizeof sizes_mb / sizeof *sizes_mb; i++)
		plan_add(plan, &(BucketConfig){ { asked_nodes ? asked_nodes : 2,
			asked_Gbps > 0 ? asked_Gbps : 1, 0 }, sizes_mb[i] });
}

static void plan(Plan *plan)
{
	static const struct { long nodes; double Gbps; } links[] = { { 2, 0.25 },
		{ 2, 1 }, { 2, 10 }, { 4, 1 } };
	cost_options.folders = folder;
	count_folders();
	check_rate();
	for (size_t i = 0; i < sizeof links / sizeof *links; i++)
		for (int strategy = 0; strategy < NOVER_NODES; strategy++)
			if (i == 0 || (asked_nodes == 0 && asked_Gbps == 0))
				plan_add(plan, &(OverNodesConfig){
					asked_nodes ? asked_nodes : links[i].nodes,
					asked_Gbps > 0 ? asked_Gbps : links[i].Gbps, strategy });
}

// run a job on nodes, and read its table
static const char *size_name(void)
{
	return model_sizes[size >= 0 ? size : SIZE_MEDIUM].name;
}

/* sets said to the first line of a command's output; returns as pclose */
static int run_command(const char *command, char *said, size_t room)
{
	char *line = NULL;
	size_t capacity = 0;
	FILE *from = popen(command, "r");
	if (from == NULL)
		die("cannot start a shell");
	*said = '\0';
	while (getline(&line, &capacity, from) > 0)
		if (*said == '\0')
			snprintf(said, room, "%.*s", (int)strcspn(line, "\n"), line);
	free(line);
	return pclose(from);
}

// run a program as a job on the nodes
/* the one row of a program's table; NULL: the status of our row says why there
 * is none */
static Records *run_job(Row *row, const OverNodesConfig *c, const char *settings,
	const char *program, const char *arguments)
{
	char *folder = process_folder("nodes"), *self = process_beside("%s", program),
		*words[] = { process_word(self), NULL }, said[160], *command, *table;
	if (asprintf(&table, "%s/t.tsv", folder) < 0)
		die("out of host memory");
	words[1] = process_word(table);
	if (asprintf(&command,
		"OMPI_MCA_mpi_yield_when_idle=%d %s timeout -k 5 120 bash "
		"src/bench/two_nodes.sh --nodes %ld --rate %.0fkbit 1 %s --device "
		"cpu --ranks %ld --seed %ld --size %s --precision fp32 --warmup 2 "
		"--steps 5 %s --out %s 2>&1",
		2 * c->nodes > sysconf(_SC_NPROCESSORS_ONLN), settings, c->nodes,
		c->Gbps * 1e6, words[0], c->nodes, harness_seed, size_name(),
		arguments, words[1]) < 0)
		die("out of host memory");
	int status = run_command(command, said, sizeof said);
	Records *r = records_read(table);
	if (r == NULL || records_count(r) == 0
		|| !records_is(r, 0, ROW_STATUS, "ok")) {
		row_skip(row, "%s", *said ? said : "no row");
		if (status == 0)
			row_skip(row, "%s said nothing", program);
		records_free(&r);
	}
	unlink(table);
	rmdir(folder);
	char *const used[] = { folder, self, words[0], words[1], table, command };
	for (size_t i = 0; i < sizeof used / sizeof *used; i++)
		free(used[i]);
	return r;
}

// keep the shortest of several jobs
/* of several jobs the one whose step, in this column, is shortest */
static Records *run_on_nodes(Row *row, const OverNodesConfig *c,
	const char *program,
	const char *arguments, const char *step)
{
	enum { JOBS = 3 };
	Records *least = run_job(row, c, "", program, arguments);
	for (int i = 1; i < JOBS && least != NULL; i++) {
		Records *r = run_job(row, c, "", program, arguments), *longer = r;
		if (r == NULL || records_number(r, 0, step)
			< records_number(least, 0, step)) {
			longer = least;
			least = r;
		}
		records_free(&longer);
	}
	return least;
}

// predict a step over a link
/* ms of the collectives in a step that follows another */
static double collectives_alone_in_step(const CostMachine *m, const CostRun *r)
{
	double ms[2];
	for (int i = 0; i < 2; i++) {
		QueueSchedule s = cost_schedule(m, r, i + 1);
		ms[i] = schedule_sum(&s, COMM_QUEUE);
		schedule_free(&s);
	}
	return ms[1] - ms[0];
}

// replace the link by a slow one
static CostMachine link_of(const OverNodesConfig *c, const CostRun *r)
{
	CostMachine m = cost_fitted(0)->machine;
	const double carried = 1448.0 / 1514;
	double on_host = collectives_alone_in_step(&m, r),
		wire = c->Gbps / 8 * carried;
	m.node = 1;
	m.far.GBps = fmin(m.near.GBps, wire);
	for (int k = 0; k < COST_COLLECTIVES; k++)
		m.byte_cost[k] = fmax(m.byte_cost[k] * m.far.GBps / m.near.GBps,
			m.far.GBps / wire);
	m.stretch.comm = 1 + (m.stretch.comm - 1) * fmin(1, on_host
		/ fmax(collectives_alone_in_step(&m, r), 1e-9));
	return m;
}

// describe the measured job as a run
static CostRun run_of(const OverNodesConfig *c, const Records *alone)
{
#define COST_OF(id, name, cost, ...) cost,
	static const CostStrategy strategies[] = { OVER_NODES_OF(COST_OF, COST_OF) };
	Shape shape = scaled_down(model_sizes[size >= 0 ? size
		: SIZE_MEDIUM].shape);
	double context = records_number(alone, 0, "context"),
		batch = records_number(alone, 0, "batch");
	return (CostRun){ .shape = cost_shape(&shape), .tokens = context * batch,
		.context = context, .data = c->nodes, .tensor = 1, .parts = 1,
		.stages = 1, .microbatches = 1, .interleave = 1,
		.strategy = strategies[c->strategy], .bucket_mb = 0.25, .prefetch = 1,
		.real = 4, .low = 4, .gradient = 4, .gather = 4, .wire = 4,
		.flash = true, .fwd_ms = records_number(alone, 0, "fwd_ms"),
		.bwd_ms = records_number(alone, 0, "bwd_ms"),
		.opt_ms = records_number(alone, 0, "opt_ms") };
}

// measure a step over nodes
static void run(Row *row, const void *config)
{
#define TIMED_BY(id, name, cost, ...) { __VA_ARGS__ },
	static const struct { const char *program, *arguments; } timed[] = {
		OVER_NODES_OF(TIMED_BY, TIMED_BY) };
	const OverNodesConfig *c = config;
	const char *program = timed[c->strategy].program,
		*arguments = timed[c->strategy].arguments;
	// measure a step of one rank
	row_set(row, "size", "%s", size_name());
	Records *alone = run_on_nodes(row, c, STATE_TIMES "single", "period_ms");
	if (alone == NULL)
		return;
	CostRun r = run_of(c, alone);
	CostMachine m = link_of(c, &r);
	double predicted = cost_step(&m, &r).step_ms;
	row_set(row, "single_ms", "%.3f", records_number(alone, 0, "period_ms"));
	row_set(row, "predicted_ms", "%.3f", predicted);
	row_set(row, "predicted_alone_ms", "%.3f", collectives_alone_in_step(&m, &r));
	records_free(&alone);
	Records *steps = run_on_nodes(row, c, program, arguments, "period_ms");
	if (steps == NULL)
		return;
	double measured = records_number(steps, 0, "period_ms");
	row_set(row, "measured_ms", "%.3f", measured);
	row_set(row, "alone_ms", "%.3f", records_number(steps, 0, "alone_ms"));
	row_set(row, "error", "%.4f", predicted / measured - 1);
	row_set(row, "sent_MB", "%.3f",
		records_number(steps, 0, "sent_derived_MB"));
	records_free(&steps);
	steps = run_job(row, c, "OMPI_MCA_btl_tcp_eager_limit=65536", program,
		arguments);
	if (steps == NULL)
		return;
	row_set(row, "rendezvous_ms", "%.3f",
		records_number(steps, 0, "alone_ms"));
	records_free(&steps);
}

// time buckets over nodes
static void run_buckets(Row *row, const void *config)
{
	static const char *const columns[] = { "size", "buckets", "single_ms",
		"single_bwd_ms", "o_us", "w_GBps", "gradient_MB", "ideal_ms",
		"simulated_ms", "step_ms", "step_sd_ms" };
	const BucketConfig *c = config;
	char arguments[64];
	snprintf(arguments, sizeof arguments, "--sweep buckets --wire fp32 "
		"--bucket-mb %g", c->bucket_mb);
	Records *r = run_on_nodes(row, &c->link, "ddp_bucketed_benchmarking",
		arguments, "step_ms");
	if (r == NULL)
		return;
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
		row_set(row, columns[i], "%s", records_text(r, 0, columns[i]));
	records_free(&r);
}

// describe several nodes to the harness
const Experiment experiment = {
	.about = "training steps over nodes that are namespaces, and predictions",
	.options = options, .cpu_scale = SCALED, .cpu_only = true, .sweeps = SWEEPS(
		{ "steps", keys, plan, run,
			.limit_s = 300 },
		{ "buckets", bucket_keys, plan_buckets, run_buckets,
			.limit_s = 300 }),
};
