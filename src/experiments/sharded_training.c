/* sharded_training: trains a small byte-level model on a text over several ranks;
 * stops, and goes on at any number of ranks */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/file.h"
#include "dist/ddp.h"
#include "dist/resume.h"
#include "cases/ddp_steps.h"
#include "cases/text.h"

#define RESUME_STRATEGIES_OF(FIRST, NEXT) \
	FIRST(DDP, "ddp") NEXT(SHARDED, "sharded") NEXT(ZERO1, "zero1") \
	NEXT(ZERO2, "zero2") NEXT(FSDP, "fsdp")
#define RESUME_STRATEGIES CHOICES(RESUME_STRATEGIES_OF)
enum { CHOICE_IDS(RESUME_STRATEGIES_OF) };
typedef struct ResumeConfig {
	int strategy, precision, transport;
	long batch, ranks;               /* batch: sequences of all ranks */
} ResumeConfig;
static const Key keys[] = { KEY(ResumeConfig, strategy, RESUME_STRATEGIES),
	KEY(ResumeConfig, precision, COMMON_TYPES),
	KEY(ResumeConfig, transport, TRANSPORTS),
	KEY(ResumeConfig, batch), KEY(ResumeConfig, ranks), { 0 } };

// list the options of sharded_training
static ResumeConfig given = { .strategy = FSDP, .batch = 12, .ranks = 2 };
static const char *path = "writeup.nw", *save, *resume;
static long steps = 60, every = 10, save_every, head_chunk;
static int update;
static const Option options[] = {
	TEXT_OPTION(&path),
	STRATEGY_OPTION(&given.strategy, RESUME_STRATEGIES, "what ranks share out"),
	PRECISION_OPTION_OF(&given.precision, COMMON_TYPES,
		"of matmuls, and of gradients that travel"),
	TRANSPORT_OPTION(&given.transport),
	BATCH_OPTION_IN(&given.batch, "1..4096",
		"sequences of all ranks together"),
	RANKS_OPTION_IN(&given.ranks, "1..64", "processes of the job"),
	STEPS_OPTION_IN(&steps, "1..1000000",
		"number of the last step, those before --resume counted"),
	{ "every", OPT_INT, &every, "1..1000000", "steps from row to row" },
	SAVE_OPTION(&save, "write the run there at its end"),
	{ "save-every", OPT_INT, &save_every, "0..1000000",
		"and after so many steps; 0: no" },
	{ "resume", OPT_TEXT, &resume, "FILE", "go on with the run saved there" },
	UPDATE_OPTION(&update,
		"after the backward pass, or, zero2, in it; equal bits"),
	{ "head-chunk", OPT_INT, &head_chunk, "0..1000000",
		"tokens whose logits are there at a time; 0: all" },
	{ 0 }
};

static const Shape shape = {
	.vocab = 256, .context = 64, .d_model = 64, .d_ff = 192, .layers = 2,
		.heads = 4, .d_head = 16, .theta = 10000,
};

// set the learning rate by the number of the step
static double learning_rate(long step)           /* 1 is the first */
{
	const double peak = 3e-3, warmup = 20;
	return peak * fmin(step / warmup, sqrt(warmup / step));
}

// train by one of the strategies
static void begin_training(Trainer *t, Device *d, Comm *comm,
	const ResumeConfig *c)
{
	const OptimizerSettings settings = { .beta1 = 0.9, .beta2 = 0.95,
		.eps = 1e-8, .decay = 0.1 };
	Type wire = c->precision;
	const Policy *policy = &policies[wire == BF16 ? POLICY_BF16 : POLICY_FP32];
	bool zero = c->strategy >= ZERO1;
	t->m = (zero ? model_new_bare : model_new)(d, &shape, policy, harness_seed);
	model_fuse(t->m);
	model_follow(t->m, &(ModelPlan){ .head_chunk = head_chunk });
	if (zero) {
		t->zero = zero_new(t->m, comm, &(ZeroSettings){
			.stage = c->strategy - ZERO1 + 1, .prefetch = c->strategy == FSDP,
			.wire = wire, .early = update == UPDATE_EARLY }, &adamw_kind,
			settings);
		t->o = zero_optimizer(t->zero);
		return;
	}
	t->ddp = ddp_new(t->m, comm, &(DdpSettings){ DDP_BUCKETED, 25, wire,
		false });
	if (c->strategy == SHARDED) {
		t->sharded = sharded_model_new(t->m, comm, &adamw_kind, settings);
		t->o = sharded_model_optimizer(t->sharded);
		return;
	}
	t->own = adamw_new(t->m, 0, settings.beta1, settings.beta2, settings.eps,
		settings.decay);
	t->o = &t->own;
}

// take a rank's part of the batch from the text
static void fill_batch(Batch *b, const Text *t, long position)
{
	for (size_t i = 0; i < b->B; i++)
		text_windows(t, 0, t->ntrain, harness_seed, (uint64_t)position + i, 1,
			b->T, b->tokens + i * b->T, b->targets + i * b->T);
}

// train on, and save
static void train(Row *row, Trainer *t, Comm *comm, const Text *text,
	long batch)
{
	size_t own = batch / row->ranks;
	Batch b = batch_random(own, shape.context, shape.vocab, harness_seed);
	long position = resume ? trainer_load(t, resume) : 0;
	for (long step = t->o->t + 1; step <= steps; step++) {
		fill_batch(&b, text, position + row->rank * (long)own);
		t->o->settings.lr = learning_rate(step);
		double loss = timed_step(t->m, t->o, &b, MODE_TRAIN).loss;
		loss = comm_sum(comm, loss) / row->ranks;
		position += batch;
		row_set(row, "step", "%ld", step);
		row_set(row, "position", "%ld", position);
		row_set(row, "lr", "%.9g", t->o->settings.lr);
		row_set(row, "loss_nats", "%.9g", loss);
		if (step % every == 0 || step == steps)
			row_emit(row);
		if (save && (step == steps || (save_every && step % save_every == 0)))
			trainer_save(t, comm, save, position);
	}
	batch_free(&b);
}

// train on a row's ranks
static void run(Row *row, const void *config)
{
	const ResumeConfig *c = config;
	Text text = text_read(path, 16 * (shape.context + 1));
	Device *d = harness_device();
	Comm *comm = ddp_comm(row, d, &(DdpConfig){ .transport = c->transport });
	Trainer t = { 0 };
	begin_training(&t, d, comm, c);
	train(row, &t, comm, &text, c->batch);
	trainer_free(&t);
	comm_close(&comm);
	device_close(&d);
	text_free(&text);
}

// refuse what cannot go on, before ranks start
static void check_resume(void)
{
	TensorFile *f = tensorfile_open(resume);
	long step = resume_step(f, resume, &shape, &adamw_kind);
	tensorfile_close(&f);
	if (step >= steps)
		usage_error("--steps %ld: the run in %s has had %ld", steps, resume,
			step);
}

// plan a run that can go on
static void plan(Plan *plan)
{
	int rank, ranks;
	Text text = text_read(path, 16 * (shape.context + 1));
	text_free(&text);
	if (update == UPDATE_EARLY && given.strategy != ZERO2)
		usage_error("--update early: expected --strategy zero2");
	if (given.batch % given.ranks != 0)
		usage_error("--batch %ld: expected a multiple of the %ld ranks",
			given.batch, given.ranks);
	if (save_every && save == NULL)
		usage_error("--save-every: expected --save FILE too");
	if (resume)
		check_resume();
	if (save && (!link_launched(&rank, &ranks) || rank == 0))
		file_try(save, tensorfile_recognised, harness_forced());
	plan_add(plan, &given);
}

static int ranks_of(const void *config)
{
	return (int)((const ResumeConfig *)config)->ranks;
}

const Experiment experiment = {
	.about = "train over several ranks; stop, and go on at any number of them",
	.options = options, .sweeps = SWEEPS(
		{ "curve", keys, plan, run,
			.ranks = ranks_of }),
};
