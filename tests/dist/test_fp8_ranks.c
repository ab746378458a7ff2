/* two ranks train in FP8 with the bits of one, and go on from a checkpoint */
#define _GNU_SOURCE
#include "base/safetensors.h"
#include "dist/ddp.h"
#include "dist/resume.h"
#include "model/fp8.h"
#include "tests/base/folder.h"
#include "tests/dist/job.h"
#include "tests/ops/compare.h"
#include "train/step.h"

// train in FP8 in one process
enum { RANKS = 2, STEPS = 20, SAVED = 7, B = 2, T = 6 };
enum { BY_DDP, BY_ZERO1, BY_ZERO2, NWAYS };
static const Shape shape = { 31, T, 16, 24, 2, 2, 8, 10000 };

typedef struct Fp8Run {
	Fp8Settings settings;
	int way;
	const char *from, *to;           /* a checkpoint; NULL: none */
	real *weights;                   /* (count), of rank 0 */
} Fp8Run;

static Batch part(int step, int rank)
{
	return batch_random(B, T, shape.vocab, 100 * step + rank);
}

/* the gradients of all ranks, added in their order */
static void alone(Device *d, Comm *c, void *arg)
{
	const Fp8Run *r = arg;
	Model *m = model_new(d, &shape, &policies[POLICY_FP8], 7);
	fp8_set(m, r->settings);
	model_fuse(m);
	Optimizer o = adamw_new(m, 1e-2, 0.9, 0.999, 1e-8, 0.01);
	Array sum = array_new(d, m->extent, TYPE_REAL, MEM_TEMPORARY, "sum");
	m->share = 1.0 / RANKS;
	for (int step = 0; step < STEPS; step++) {
		m->ops->fill(d, sum, 0, m->extent);
		for (int rank = 0; rank < RANKS; rank++) {
			Batch b = part(step, rank);
			model_forward(m, b.tokens, b.targets, B, T, true);
			model_backward(m, false);
			m->ops->add(d, sum, sum, m->gradients, m->extent);
			batch_free(&b);
		}
		m->ops->cast(d, m->gradients, sum, m->extent);
		update_weights(m, &o);
	}
	read_weights(m, r->weights);
	device_free(d, sum.at);
	optimizer_free(&o);
	model_free(&m);
}

// train in FP8 by ranks
static const OptimizerSettings adamw_settings = { .lr = 1e-2, .beta1 = 0.9,
	.beta2 = 0.999, .eps = 1e-8, .decay = 0.01 };

static Trainer start(Device *d, Comm *c, const Fp8Run *r)
{
	Trainer t = { 0 };
	const Policy *policy = &policies[POLICY_FP8];
	t.m = r->way == BY_DDP ? model_new(d, &shape, policy, 7)
		: model_new_bare(d, &shape, policy, 7);
	fp8_set(t.m, r->settings);
	model_fuse(t.m);
	if (r->way != BY_DDP) {
		t.zero = zero_new(t.m, c, &(ZeroSettings){ .stage = r->way,
			.prefetch = 1, .wire = FP32, .poison = true }, &adamw_kind,
			adamw_settings);
		t.o = zero_optimizer(t.zero);
		return t;
	}
	t.ddp = ddp_new(t.m, c, &(DdpSettings){ DDP_BUCKETED, 0.004, FP32, false });
	t.own = adamw_new(t.m, 1e-2, 0.9, 0.999, 1e-8, 0.01);
	return t;
}

static void together(Device *d, Comm *c, void *arg)
{
	const Fp8Run *r = arg;
	Trainer t = start(d, c, r);
	real *weights = need(malloc(t.m->count * sizeof *weights));
	if (t.o == NULL)
		t.o = &t.own;
	for (int step = r->from ? SAVED : 0; step < STEPS; step++) {
		if (step == SAVED && r->from)
			trainer_load(&t, r->from);
		if (step == SAVED && r->to)
			trainer_save(&t, c, r->to, 0);
		Batch b = part(step, comm_rank(c));
		timed_step(t.m, t.o, &b, MODE_TRAIN);
		batch_free(&b);
	}
	if (t.zero)
		zero_read_weights(t.zero, weights);
	else
		read_weights(t.m, weights);
	if (comm_rank(c) == 0)
		memcpy(r->weights, weights, t.m->count * sizeof *weights);
	free(weights);
	trainer_free(&t);
}

// test: ranks have the bits of one process in FP8
static void ranks_have_the_bits_of_one(void **state)
{
	size_t nbytes = shape_count(&shape) * sizeof(real);
	real *want = shared(nbytes), *got = shared(nbytes);
	for (int i = 0; i < NFP8_SCALINGS * 2; i++) {
		Fp8Run r = { .settings = { i / 2, i % 2 ? E4M3 : E5M2 },
			.weights = want };
		in_ranks(1, by_owner, alone, &r);
		r.weights = got;
		for (r.way = 0; r.way < NWAYS; r.way++) {
			memset(got, 0xff, nbytes);
			in_ranks(RANKS, by_owner, together, &r);
			if (memcmp(got, want, nbytes) != 0)
				fail_msg("scaling %d, %s, way %d: other weights than alone",
					i / 2, i % 2 ? "e4m3" : "e5m2", r.way);
		}
	}
	munmap(want, nbytes);
	munmap(got, nbytes);
}

// test: a run in FP8 goes on with the same bits
static void runs_go_on_with_the_same_bits(void **state)
{
	size_t nbytes = shape_count(&shape) * sizeof(real);
	real *want = shared(nbytes), *got = shared(nbytes);
	for (int i = 0; i < NFP8_SCALINGS * NWAYS; i++) {
		Fp8Run r = { .settings = { i / NWAYS, E5M2 }, .way = i % NWAYS,
			.to = path, .weights = want };
		in_ranks(RANKS, by_owner, together, &r);
		memset(got, 0xff, nbytes);
		r.to = NULL, r.from = path, r.weights = got;
		in_ranks(RANKS, by_owner, together, &r);
		if (memcmp(got, want, nbytes) != 0)
			fail_msg("scaling %d, way %d: other weights after a checkpoint",
				i / NWAYS, i % NWAYS);
	}
	munmap(want, nbytes);
	munmap(got, nbytes);
}

// test: FP8 refuses what it cannot do
static void shard_all(Device *d, Comm *c, void *arg)
{
	start(d, c, &(Fp8Run){ .settings = { FP8_TENSOR, E5M2 }, .way = 3 });
}

static void impossible_is_refused(void **state)
{
	all_refuse(1, shard_all, NULL, 2, "stage 3");
}

TESTS_BETWEEN(make_folder, remove_folder,
	checked(ranks_have_the_bits_of_one),
	checked(runs_go_on_with_the_same_bits),
	checked(impossible_is_refused))
