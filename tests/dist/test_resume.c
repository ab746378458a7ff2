/* training goes on from a checkpoint at any number of ranks */
#define _GNU_SOURCE
#include "dist/ddp.h"
#include "dist/resume.h"
#include "tests/ops/compare.h"
#include "tests/dist/job.h"
#include "tests/base/folder.h"
#include "train/step.h"

static char again[80];

// train by any strategy
enum { GLOBAL = 12, T = 6, STEPS = 12, SAVED = 5 };
enum { OWNERS = 4, STAGES };

static const Shape shapes[] = {
	{ 31, T, 12, 10, 2, 3, 4, 10000 },
	{ 3, T, 4, 1, 3, 1, 4, 10000 },             /* many shards are empty */
};

typedef struct Run {
	const Shape *shape;
	int policy, stage;
	bool sgd;
	/* loaded before the step after SAVED, written there; NULL: no */
	const char *from, *to;
	unsigned late_us;                /* from the start to the loading */
	double *losses;                  /* (STEPS) */
	real *weights;                   /* (count) at the end, or NULL */
} Run;

static Trainer start(Device *d, Comm *c, const Run *r)
{
	Trainer t = { 0 };
	const OptimizerSettings settings = { .lr = r->sgd ? 0.1 : 1e-2,
		.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .decay = 0.01,
		.momentum = 0.9 };
	const OptimizerKind *kind = r->sgd ? &sgd_kind : &adamw_kind;
	// start a stage of ZeRO
	if (r->stage > 0 && r->stage < OWNERS) {
		t.m = model_new_bare(d, r->shape, &policies[r->policy], 7);
		model_fuse(t.m);
		t.zero = zero_new(t.m, c, &(ZeroSettings){ .stage = r->stage,
			.prefetch = 1, .wire = FP32, .poison = true }, kind, settings);
		t.o = zero_optimizer(t.zero);
		return t;
	}
	t.m = model_new(d, r->shape, &policies[r->policy], 7);
	model_fuse(t.m);
	t.ddp = ddp_new(t.m, c, &(DdpSettings){ DDP_BUCKETED, 0.004, FP32,
		false });
	// start data parallelism, with or without owners
	if (r->stage == OWNERS) {
		t.sharded = sharded_model_new(t.m, c, kind, settings);
		t.o = sharded_model_optimizer(t.sharded);
		return t;
	}
	t.own = r->sgd ? sgd_new(t.m, 0.1, 0.9)
		: adamw_new(t.m, 1e-2, 0.9, 0.999, 1e-8, 0.01);
	t.own.settings = settings;
	return t;
}

// train by any strategy
/* this rank's part of the batch that begins at the position */
static Batch batch_of(const Run *r, long position, int rank, int ranks)
{
	Batch all = batch_random(GLOBAL, T, r->shape->vocab, position), own = all;
	own.B = GLOBAL / ranks;
	own.tokens = malloc(own.B * T * sizeof *own.tokens);
	own.targets = malloc(own.B * T * sizeof *own.targets);
	memcpy(own.tokens, all.tokens + rank * own.B * T,
		own.B * T * sizeof *own.tokens);
	memcpy(own.targets, all.targets + rank * own.B * T,
		own.B * T * sizeof *own.targets);
	batch_free(&all);
	return own;
}

static void train(Device *d, Comm *c, void *arg)
{
	const Run *r = arg;
	int rank = comm_rank(c), ranks = comm_ranks(c);
	Trainer t = start(d, c, r);
	long position = 1000;
	if (t.o == NULL)
		t.o = &t.own;
	for (int step = r->from ? SAVED : 0; step < STEPS; step++) {
		// load or save at the step that was agreed on
		if (step == SAVED && r->from) {
			usleep(r->late_us);
			position = trainer_load(&t, r->from);
		}
		if (step == SAVED && r->to)
			trainer_save(&t, c, r->to, position);
		Batch b = batch_of(r, position++, rank, ranks);
		double loss = timed_step(t.m, t.o, &b, MODE_TRAIN).loss;
		r->losses[step] = comm_sum(c, loss) / ranks;
		batch_free(&b);
	}
	// keep the weights of the end
	real *weights = malloc(t.m->count * sizeof *weights);
	if (t.zero)
		zero_read_weights(t.zero, weights);
	else
		read_weights(t.m, weights);
	if (r->weights && rank == 0)
		memcpy(r->weights, weights, t.m->count * sizeof *weights);
	free(weights);
	trainer_free(&t);
}

// save, load and go on
static const CommSettings delayed = { .transport = "owner", .delay_us = 4000 };

static bool equal_files(const char *a, const char *b)
{
	FILE *f = fopen(a, "r"), *g = fopen(b, "r");
	int x = 0, y = 0;
	assert_true(f && g);
	while (x == y && x != EOF)
		x = getc(f), y = getc(g);
	fclose(f);
	fclose(g);
	return x == y;
}

/* the run of these ranks, and others that go on with it */
static void go_on(Run first, int ranks, double tolerance)
{
	double *losses = shared(STEPS * sizeof *losses);
	snprintf(again, sizeof again, "%s/again", folder);
	first.losses = shared(STEPS * sizeof *losses);
	first.to = path;
	in_ranks(ranks, by_owner, train, &first);
	assert_true(first.losses[STEPS - 1] < first.losses[0]);
	// go on at each number of ranks, and compare
	for (int others = 1; others <= MOST; others++) {
		Run next = first;
		next.stage = (first.stage + others) % STAGES;
		next.from = path;
		next.to = again;
		next.losses = losses;
		in_ranks(others, by_owner, train, &next);
		if (!equal_files(path, again))
			fail_msg("saved by %d in stage %d: %d in stage %d save another file",
				ranks, first.stage, others, next.stage);
		for (int i = SAVED; i < STEPS; i++)
			if (!(fabs(losses[i] - first.losses[i]) <= tolerance))
				fail_msg("%d ranks in stage %d, then %d in %d: loss of step %d "
					"is %.9g, not %.9g", ranks, first.stage, others,
					next.stage, i, losses[i], first.losses[i]);
	}
	remove(again);
	munmap(losses, STEPS * sizeof *losses);
	munmap(first.losses, STEPS * sizeof *losses);
}

// save, load and go on
static void runs_go_on_at_any_number_of_ranks(void **state)
{
	go_on((Run){ &shapes[0], POLICY_FP32, .stage = 3 }, 4, 5e-6);
	go_on((Run){ &shapes[0], POLICY_FP32, .stage = 0, .sgd = true }, 4, 5e-6);
	go_on((Run){ &shapes[1], POLICY_FP32, .stage = 2 }, 3, 5e-6);
	go_on((Run){ &shapes[0], POLICY_FP32, .stage = OWNERS }, 3, 5e-6);
	go_on((Run){ &shapes[0], POLICY_BF16, .stage = 1 }, 4, 1e-3);
}

static void the_same_ranks_go_on_with_the_same_bits(void **state)
{
	size_t nbytes = shape_count(&shapes[0]) * sizeof(real);
	for (int stage = 0; stage < STAGES; stage++) {
		Run whole = { &shapes[0], POLICY_BF16, stage, .to = path,
			.losses = shared(STEPS * sizeof(double)),
			.weights = shared(nbytes) };
		Run rest = whole;
		rest.from = path, rest.to = NULL, rest.late_us = 6000;
		rest.losses = shared(STEPS * sizeof(double));
		rest.weights = shared(nbytes);
		in_ranks(3, by_owner, train, &whole);
		in_ranks(3, delayed, train, &rest);
		assert_memory_equal(rest.losses + SAVED, whole.losses + SAVED,
			(STEPS - SAVED) * sizeof(double));
		assert_memory_equal(rest.weights, whole.weights, nbytes);
		munmap(whole.losses, STEPS * sizeof(double));
		munmap(rest.losses, STEPS * sizeof(double));
		munmap(whole.weights, nbytes);
		munmap(rest.weights, nbytes);
	}
}

static void load_weights(Device *d, Comm *c, void *arg)
{
	Trainer t = start(d, c, arg);
	TensorFile *f = tensorfile_open(path);
	Shape shape = checkpoint_shape(f, path);
	Model *m = model_new(d, &shape, &policies[POLICY_FP32], 8);
	t.o = &t.own;
	trainer_load(&t, path);
	checkpoint_load(m, f);
	if (memcmp(m->weights.at, t.m->weights.at, m->extent * sizeof(real)) != 0)
		die("the weights are others");
	tensorfile_close(&f);
	model_free(&m);
	trainer_free(&t);
}

static void a_program_that_wants_weights_finds_them(void **state)
{
	Run r = { &shapes[0], POLICY_FP32, .stage = 3, .to = path,
		.losses = shared(STEPS * sizeof(double)) };
	in_ranks(3, by_owner, train, &r);
	r.stage = 0;
	in_ranks(1, by_owner, load_weights, &r);
	munmap(r.losses, STEPS * sizeof(double));
}

// load runs that do not fit
/* key has this value; NULL: it is not there */
static void alter_metadata(const char *key, const char *value)
{
	static const char *const keys[] = { "vocab_size", "context_length", "d_model",
		"d_ff", "num_layers", "num_heads", "rope_theta", "optimizer", "step",
		"position" };
	const char *meta[2 * 10 + 1] = { NULL };
	TensorFile *f = tensorfile_open(path);
	int n = tensorfile_count(f), pairs = 0;
	TensorView *views = malloc(n * sizeof *views);
	for (int i = 0; i < n; i++)
		views[i] = *tensorfile_at(f, i);
	for (int i = 0; i < 10; i++) {
		bool altered = strcmp(keys[i], key) == 0;
		if (altered && value == NULL)
			continue;
		meta[pairs++] = keys[i];
		meta[pairs++] = altered ? value : tensorfile_meta(f, keys[i]);
	}
	tensorfile_write(again, views, n, meta);
	tensorfile_close(&f);
	free(views);
}

static void load_again(Device *d, Comm *c, void *arg)
{
	Trainer t = start(d, c, arg);
	t.o = t.o ? t.o : &t.own;
	trainer_load(&t, again);
	trainer_free(&t);
}

static void expect_refused(Run r, const char *key, const char *value,
	const char *said)
{
	Job job = { "cpu", by_owner, load_again, &r };
	alter_metadata(key, value);
	for (r.stage = 0; r.stage < STAGES; r.stage++)
		all_end(2, be_rank, &job, said ? 2 : 0, said);
}

static void runs_that_do_not_fit_are_refused(void **state)
{
	Run r = { &shapes[0], POLICY_FP32, .stage = 1, .to = path,
		.losses = shared(STEPS * sizeof(double)) };
	in_ranks(2, by_owner, train, &r);
	expect_refused(r, "", NULL, NULL);
	expect_refused(r, "context_length", "7", NULL);
	expect_refused(r, "num_heads", "1", "heads");
	expect_refused(r, "rope_theta", "20000", "rope_theta");
	expect_refused(r, "optimizer", "sgd", "the optimizer is sgd");
	expect_refused(r, "optimizer", NULL, "the optimizer is absent");
	expect_refused(r, "step", NULL, "'step'");
	expect_refused(r, "step", "-1", "'step' is '-1'");
	expect_refused(r, "position", "9007199254740993", "'position'");
	expect_refused(r, "position", "", "'position' is ''");
	r.sgd = true;
	expect_refused(r, "optimizer", "sgd", "optimizer.velocity");
	remove(again);
	munmap(r.losses, STEPS * sizeof(double));
}

TESTS_BETWEEN(make_folder, NULL,
	cmocka_unit_test(runs_go_on_at_any_number_of_ranks),
	cmocka_unit_test(the_same_ranks_go_on_with_the_same_bits),
	cmocka_unit_test(a_program_that_wants_weights_finds_them),
	cmocka_unit_test(runs_that_do_not_fit_are_refused),
	cmocka_unit_test(no_other_file_is_left))
