/* tensor_parallel: steps of one global batch on one rank, in tensor-parallel
 * groups of ranks, and in data-parallel copies */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "dist/tensor.h"
#include "cases/sharding_case.h"

// describe a row of tensor_parallel
typedef struct TensorConfig {
	/* batch: sequences of all ranks together; ctas: of the copies' collectives,
	 * or of the group's where there is one copy */
	DdpConfig ddp;
	long tp, dp;
	int norms, graphs;
} TensorConfig;
#define NORM_OUTPUTS_OF(FIRST, NEXT) \
	FIRST(GATHER_NORMS, "gather") NEXT(KEEP_NORMS, "keep")
enum { CHOICE_IDS(NORM_OUTPUTS_OF) };
#define NO_YES_OF(FIRST, NEXT) FIRST(NO, "no") NEXT(YES, "yes")
enum { CHOICE_IDS(NO_YES_OF) };
static const Key keys[] = { MODEL_KEYS, KEY(DdpConfig, batch),
	KEY(TensorConfig, tp), KEY(TensorConfig, dp),
	KEY(DdpConfig, wire, COMMON_TYPES),
	KEY(DdpConfig, transport, TRANSPORTS), KEY(DdpConfig, ctas),
	KEY(TensorConfig, norms, CHOICES(NORM_OUTPUTS_OF)),
	KEY(TensorConfig, graphs, CHOICES(NO_YES_OF)),
	{ 0 } };

// list the options of tensor_parallel
static DdpGiven given = DDP_GIVEN;
static long tp, dp;
static int norms = KEEP_NORMS, graphs = YES;
static const Option options[] = {
	SIZE_OPTION(&given.size), CONTEXT_OPTION(&given.context),
	BATCH_OPTION_IN(&given.batch, "1..4096", "sequences of all ranks"),
	PRECISION_OPTION(&given.precision),
	RANKS_OPTION_IN(&given.ranks, "1..64", "most processes of a job"),
	{ "tp", OPT_INT, &tp, "0..64",
		"ranks of a group; 0: 1, 2, 4 and so on, and all --ranks" },
	{ "dp", OPT_INT, &dp, "0..64", "groups; 0: 1 and what fits --ranks" },
	DDP_COMM_OPTIONS(given),
	WIRE_OPTION(&given.wire, "gradients that copies sum"),
	{ "norms", OPT_CHOICE, &norms, CHOICES(NORM_OUTPUTS_OF),
		"what a group does with the norms' outputs of all tokens" },
	{ "graphs", OPT_CHOICE, &graphs, CHOICES(NO_YES_OF),
		"are steps recorded, where the device can" },
	DDP_STEPS_OPTIONS(given), { 0 } };

static int ranks_of(const void *config)
{
	const TensorConfig *c = config;
	return (int)(c->tp * c->dp);
}

// find out whether ranks can share a batch
/* NULL, or why these ranks cannot share the batch */
static const char *grid_error(const TensorConfig *c)
{
	const ModelConfig *m = &c->ddp.model;
	Shape s = studied_shape(m->size, m->context);
	if (c->ddp.batch % c->dp != 0)
		return "the batch does not divide by the copies";
	if (c->ddp.batch / c->dp * m->context % c->tp != 0)
		return "the tokens do not divide by the ranks of a group";
	return group_error(&s, &policies[m->precision], (int)c->tp);
}

/* thread blocks of a group's collectives, for which matmuls wait */
static int group_ctas(void)
{
	return harness_on_gpu() ? 16 : 0;
}

// plan one grid of ranks
static void plan_grid(Plan *plan, TensorConfig c)
{
	bool asked = c.tp == tp && c.dp == dp;
	if ((tp && tp != c.tp) || (dp && dp != c.dp)
		|| !ddp_settle(&c.ddp, &given))
		return;
	if (c.dp == 1 && (c.tp == 1 || given.ctas < 0))
		c.ddp.ctas = c.tp > 1 ? group_ctas() : 0;
	const char *error = grid_error(&c);
	if (error && asked)
		usage_error("--tp %ld --dp %ld: %s", tp, dp, error);
	if (!error)
		plan_add(plan, &c);
}

// plan the grids of a model
static void plan_grids(Plan *plan, int size, int precision)
{
	TensorConfig c = { .ddp = { .model = { .size = size,
		.precision = precision } }, .tp = 1, .dp = 1, .norms = norms,
		.graphs = graphs };
	c.ddp.wire = given.wire >= 0 ? given.wire
		: precision == POLICY_BF16 ? BF16 : FP32;
	if (tp && dp) {
		c.tp = tp, c.dp = dp;
		plan_grid(plan, c);
		return;
	}
	plan_grid(plan, c);
	for (long n = given.ranks % 2 ? given.ranks : 2; 1 < n && n <= given.ranks;
		n = n < given.ranks && 2 * n > given.ranks ? given.ranks : 2 * n) {
		c.tp = 1, c.dp = n;
		plan_grid(plan, c);
		c.tp = n, c.dp = 1;
		plan_grid(plan, c);
		c.tp = 2, c.dp = n / 2;
		if (n > 2 && n % 2 == 0)
			plan_grid(plan, c);
	}
}

// plan sizes and precisions
static void plan(Plan *plan)
{
	bool gpu = harness_on_gpu();
	int asked = given.precision;
	ddp_given_settle(&given);
	if (asked >= 0 && asked != POLICY_FP32 && asked != POLICY_BF16)
		usage_error("--precision %s: expected fp32 or bf16",
			policies[asked].name);
	long least = (tp ? tp : 1) * (dp ? dp : 1);
	given.ranks = least > given.ranks ? least : given.ranks;
	for (int s = 0; s < NSIZES; s++)
		for (int p = 0; p < 2; p++) {
			int precision = (p == 0) == gpu ? POLICY_BF16 : POLICY_FP32;
			bool usual = p == 0 || gpu || s == SIZE_LARGE;
			if ((given.size >= 0 ? given.size == s
				: s < (gpu ? NTRAINED : NTRAINED - 1))
				&& (given.precision >= 0 ? given.precision == precision : usual))
				plan_grids(plan, s, precision);
		}
}

// declare a step in groups
enum { MOST_WATCHED = NSTAMPS / 2 - 8, FIRST_WATCHED = 8 };
typedef struct TensorCase {
	TensorConfig config;
	DdpCase *run;
	Link *whole;                     /* all ranks; NULL unless tp and dp > 1 */
	Comm *group;                     /* NULL: the rank has the whole model */
	TensorGroup ranks;
	RankGroup watching;              /* what the model calls: watches `ranks` */
	/* of the last step that was watched: the group's collectives, and the kinds
	 * of those that the compute queue waited for, one after another */
	bool watch;
	GroupOp ops[MOST_WATCHED];
	GroupKind waits[MOST_WATCHED], kinds[GROUP_SLOTS];
	int nops, nwaits;
} TensorCase;

// open the communicators of a grid
static Comm *open_over(Link *link, Device *d, const DdpConfig *c, int ctas)
{
	return harness_comm_over(link, d, &(CommSettings){
		.transport = transport_names[c->transport], .ctas = ctas });
}

static void open_ranks(TensorCase *c, Row *row, Device *d, DdpConfig *own)
{
	const TensorConfig *config = &c->config;
	Link *link = harness_link(row), *group = NULL, *copies = link;
	if (config->tp > 1)
		group = link;
	if (config->tp > 1 && config->dp > 1) {
		c->whole = link;
		group = link_split(link, row->rank / (int)config->tp);
		copies = link_split(link, row->rank % (int)config->tp);
	}
	if (group)
		c->group = open_over(group, d, own, c->whole ? group_ctas()
			: (int)own->ctas);
	c->run = ddp_case_over(d, c->group && !c->whole ? c->group
		: open_over(copies, d, own, (int)own->ctas), own);
	c->run->unrecorded = config->graphs == NO;
}

// open and close a case of a grid
static TensorCase *open_case(Row *row, const TensorConfig *config)
{
	TensorCase *c = need(calloc(1, sizeof *c));
	DdpConfig own = config->ddp;
	Device *d = harness_device();
	c->config = *config;
	own.batch = config->ddp.batch / config->dp;
	own.ranks = config->dp;
	open_ranks(c, row, d, &own);
	return c;
}

static void close_case(TensorCase **c)
{
	ddp_case_end((*c)->run);
	if ((*c)->whole)
		comm_close(&(*c)->group);
	ddp_case_close(&(*c)->run);
	if ((*c)->whole)
		link_close(&(*c)->whole);
	free(*c);
	*c = NULL;
}

// stamp what the compute queue waits for
static void watch_start(void *self, const GroupOp *op, GroupSlot slot)
{
	TensorCase *c = self;
	c->kinds[slot] = op->kind;
	if (c->watch && c->nops == MOST_WATCHED)
		die("a step has more collectives than %d", MOST_WATCHED);
	if (c->watch)
		c->ops[c->nops++] = *op;
	c->ranks.group.start(c->ranks.group.self, op, slot);
}

static void watch_join(void *self, GroupSlot slot)
{
	TensorCase *c = self;
	Device *d = c->run->device;
	int from = FIRST_WATCHED + 2 * c->nwaits;
	if (!c->watch) {
		c->ranks.group.join(c->ranks.group.self, slot);
		return;
	}
	c->waits[c->nwaits++] = c->kinds[slot];
	device_stamp(d, COMPUTE, from);
	c->ranks.group.join(c->ranks.group.self, slot);
	device_stamp(d, COMPUTE, from + 1);
}

// put the watcher between model and group
static void make_group(TensorCase *c)
{
	tensor_group(&c->ranks, c->run->device, c->group);
	c->watching = (RankGroup){ c, c->ranks.group.rank, c->ranks.group.ranks,
		c->whole ? group_ctas() : (int)c->config.ddp.ctas,
		c->config.norms == KEEP_NORMS, watch_start, watch_join };
}

// begin training on a grid
static Batch batch_of_copy(const TensorCase *c, const Shape *s)
{
	size_t all = c->config.ddp.batch, B = all / c->config.dp;
	int copy = c->config.dp > 1 ? comm_rank(c->run->comm) : 0;
	Batch b = batch_random(all, s->context, s->vocab, harness_seed);
	size_t n = B * s->context;
	memmove(b.tokens, b.tokens + copy * n, n * sizeof *b.tokens);
	memmove(b.targets, b.targets + copy * n, n * sizeof *b.targets);
	b.B = B;
	return b;
}

// make the model of a rank
static void begin_case(void *arg)
{
	TensorCase *c = arg;
	DdpCase *run = c->run;
	const ModelConfig *mc = &c->config.ddp.model;
	const Policy *policy = &policies[mc->precision];
	Shape s = studied_shape(mc->size, mc->context);
	device_reset_peak(run->device);
	if (c->group)
		make_group(c);
	run->m = model_new_part(run->device, &s, policy, harness_seed,
		c->group ? &c->watching : NULL);
	model_fuse(run->m);
	run->batch = batch_of_copy(c, &s);
	if (c->config.dp > 1)
		run->ddp = ddp_new(run->m, run->comm, &(DdpSettings){ DDP_BUCKETED,
			harness_on_gpu() ? 25 : 0.25, run->config.wire,
			false });
	ddp_case_train(run, NULL);
	if (run->ddp)
		ddp_bind(run->ddp, &run->adamw);
}

// estimate the memory and the traffic of a grid
static MemoryEstimate estimate(const TensorCase *c)
{
	const DdpCase *run = c->run;
	const Model *m = run->m;
	Type wire = run->config.wire;
	MemoryEstimate e = memory_estimate(m, run->config.batch, m->shape.context,
		true);
	double buckets = run->ddp && m->gradients.type != wire
		? m->extent * (double)type_size(wire) : 0;
	e.category[MEM_GRADIENT] += buckets;
	e.total += buckets;
	return e;
}

static double width_of(const Model *m, OpKind kind)
{
	return (double)type_size(m->policy->op[kind].output);
}

// derive what a rank sends to its group
/* bytes that a rank sends to its group in a step */
static double derived_bytes(const TensorCase *c)
{
	const Model *m = c->run->m;
	double n = c->config.tp, N = (double)c->run->config.batch * m->shape.context,
		C = m->shape.d_model, L = m->shape.layers, real = type_size(TYPE_REAL),
		again = c->config.norms == KEEP_NORMS ? 0 : 2 * L + 1,
		rows = (4 * L + 2 + again) * width_of(m, OP_LINEAR)
		+ 4 * L * width_of(m, OP_LINEAR) + width_of(m, OP_EMBEDDING)
		+ width_of(m, OP_RESIDUAL);
	return (n - 1) / n * (N * C * rows + 3 * n * N * real
		+ 2 * (2 * L + 1) * C * real);
}

// time the steps of a grid
/* the largest over all ranks of the grid */
static double slowest(const TensorCase *c, double x)
{
	x = comm_max(c->run->comm, x);
	return c->whole ? comm_max(c->group, x) : x;
}

static double sent(const Comm *comm)
{
	double sum = 0;
	for (int kind = 0; kind < NCOLLECTIVES; kind++)
		sum += comm ? comm_sent(comm, kind) : 0;
	return sum * 1e-6;
}

// time steps and count what they send
static void time_steps(Row *row, TensorCase *c)
{
	DdpCase *run = c->run;
	double loss = ddp_case_steps(run, 0, 0, 1).loss;
	long warmup = run->config.warmup, steps = run->config.steps;
	double n = warmup + steps, group = sent(c->group), all = sent(run->comm);
	DdpTimes t = ddp_case_steps(run, 0, warmup, steps);
	double *const times[] = { &t.fwd_ms, &t.bwd_ms, &t.wait_ms, &t.opt_ms,
		&t.step.median, &t.step.sd, &t.period_ms };
	group = (sent(c->group) - group) / n;
	all = (sent(run->comm) - all) / n;
	for (size_t i = 0; i < sizeof times / sizeof *times; i++)
		*times[i] = slowest(c, *times[i]);
	t.loss = comm_sum(run->comm, loss) / comm_ranks(run->comm);
	row_set(row, "period_ms", "%.4f", t.period_ms);
	ddp_case_set_times(row, &t);
	row_set(row, "group_MB", "%.4f", group);
	row_set(row, "group_derived_MB", "%.4f", c->group ? derived_bytes(c) * 1e-6
		: 0);
	row_set(row, "copies_MB", "%.4f", run->ddp ? all : 0);
	row_set(row, "weights_MB", "%.4f", run->m->count * 4e-6);
	row_set(row, "via", "%s", comm_transport(c->group ? c->group : run->comm));
}

// time the collectives of a group
static double waited_ms(const TensorCase *c, GroupKind kind)
{
	double ms = 0;
	for (int i = 0; i < c->nwaits; i++)
		if (c->waits[i] == kind)
			ms += device_stamped_ms(c->run->device, FIRST_WATCHED + 2 * i,
				FIRST_WATCHED + 2 * i + 1);
	return ms;
}

// time what the compute queue waits for
static void time_collectives(Row *row, TensorCase *c)
{
	static const char *const columns[NGROUP_KINDS] = {
		[GROUP_GATHER] = "gather_ms", [GROUP_SCATTER] = "scatter_ms",
		[GROUP_REDUCE] = "reduce_ms" };
	int steps = (int)c->run->config.steps;
	double *ms = need(calloc(NGROUP_KINDS * (size_t)steps, sizeof *ms));
	ddp_case_hook(c->run);
	c->watch = true;
	for (int i = 0; i < steps; i++) {
		c->nops = c->nwaits = 0;
		timed_step(c->run->m, c->run->optimizer, &c->run->batch, MODE_TRAIN);
		for (int k = 0; k < NGROUP_KINDS; k++)
			ms[k * steps + i] = waited_ms(c, k);
	}
	c->watch = false;
	for (int k = 0; k < NGROUP_KINDS; k++)
		row_set(row, columns[k], "%.4f", slowest(c,
			stats_of(ms + k * steps, steps).median));
	row_set(row, "collectives", "%d", c->nops);
	free(ms);
}

// time the collectives of a group alone
static void time_alone(Row *row, TensorCase *c)
{
	Device *d = c->run->device;
	int steps = (int)c->run->config.steps;
	double *ms = need(calloc(steps, sizeof *ms));
	size_t most = 1;
	for (int i = 0; i < c->nops; i++)
		most = c->ops[i].n > most ? c->ops[i].n : most;
	Array x = array_new(d, most, FP32, MEM_TEMPORARY, "an array that travels");
	ops_for(d)->fill(d, x, 0, most);
	for (int i = 0; i < steps; i++) {
		comm_barrier(c->run->comm);
		device_stamp(d, COMPUTE, 0);
		for (int k = 0; k < c->nops; k++) {
			GroupOp op = c->ops[k];
			op.x.at = x.at;
			group_collective(&c->ranks.group, op);
		}
		device_stamp(d, COMPUTE, 1);
		ms[i] = device_stamped_ms(d, 0, 1);
	}
	row_set(row, "alone_ms", "%.4f", slowest(c, stats_of(ms, steps).median));
	device_free(d, x.at);
	free(ms);
}

// measure a grid
static void run(Row *row, const void *config)
{
	TensorCase *c = open_case(row, config);
	Moment moments[NMOMENTS];
	moments_of_steps(c->run, begin_case, c, moments);
	MemoryEstimate derived = estimate(c);
	sharding_case_set_memory(row, &moments[MOMENT_BEFORE], &derived);
	time_steps(row, c);
	time_collectives(row, c);
	time_alone(row, c);
	close_case(&c);
}

const Experiment experiment = {
	.about = "steps, memory and traffic of tensor-parallel groups of ranks",
	.options = options, .cpu_scale = SCALED, .sweeps = SWEEPS(
		{ "groups", keys, plan, run,
			.ranks = ranks_of }),
};
