/* ranks that are lost or go astray while they train: every rank ends, and says
 * why, whatever the strategy */
#define _GNU_SOURCE
#include <cblas.h>
#include <omp.h>
#include <sys/time.h>

#include "base/clock.h"
#include "dist/ddp.h"
#include "dist/sharded_model.h"
#include "dist/tensor.h"
#include "dist/zero.h"
#include "tests/ops/compare.h"
#include "tests/dist/ranks.h"
#include "train/step.h"

typedef enum { DDP, SHARDED, ZERO1, ZERO2, FSDP, TENSOR, NSTRATEGIES } Strategy;
static const char *const names[NSTRATEGIES] = { "ddp", "sharded", "zero1",
	"zero2", "fsdp", "tensor" };
static const Shape shape = { 31, 6, 12, 10, 2, 3, 4, 10000 };
enum { RANKS = 3, B = 2, ASTRAY = 3 };                   /* ASTRAY: a step */

typedef struct Fault {
	Strategy strategy;
	int rank;
	/* what happens to the rank, after so long; NULL: it skips a collective */
	void (*happens)(int signal);
	int after_us, limit_s;
} Fault;

typedef struct Trained {
	Model *m;
	Optimizer adamw, *o;
	Ddp *ddp;
	ShardedModel *sharded;
	Zero *zero;
	TensorGroup group;
} Trained;

static const OptimizerSettings settings = { .lr = 1e-3, .beta1 = 0.9,
	.beta2 = 0.999, .eps = 1e-8 };

static void build(Trained *t, Device *d, Comm *c, Strategy s)
{
	const Policy *fp32 = &policies[POLICY_FP32];
	bool zero = s >= ZERO1 && s <= FSDP;
	*t = (Trained){ .o = &t->adamw };
	tensor_group(&t->group, d, c);
	t->m = zero ? model_new_bare(d, &shape, fp32, 7) : model_new_part(d, &shape,
		fp32, 7, s == TENSOR ? &t->group.group : NULL);
	model_fuse(t->m);
	if (zero) {
		t->zero = zero_new(t->m, c, &(ZeroSettings){ .stage = s - ZERO1 + 1,
			.prefetch = 1, .wire = FP32 }, &adamw_kind, settings);
		t->o = zero_optimizer(t->zero);
		return;
	}
	if (s != TENSOR)
		t->ddp = ddp_new(t->m, c, &(DdpSettings){ DDP_BUCKETED, 0.004, FP32,
			false });
	if (s == SHARDED) {
		t->sharded = sharded_model_new(t->m, c, &adamw_kind, settings);
		t->o = sharded_model_optimizer(t->sharded);
	} else {
		t->adamw = adamw_new(t->m, 1e-3, 0.9, 0.999, 1e-8, 0);
	}
}
static Hooks real_hooks;
static RankGroup real_group;
static bool skipped;

static void skip_unit(void *self, int unit, bool backward)
{
	if (!backward || skipped)
		real_hooks.after_unit(self, unit, backward);
	else
		skipped = true;
}

static void skip_sum(void *self, const GroupOp *op, GroupSlot slot)
{
	if (skipped || op->kind != GROUP_SCATTER)
		real_group.start(self, op, slot);
	skipped = skipped || op->kind == GROUP_SCATTER;
}

static void go_astray(Trained *t)
{
	real_hooks = t->m->hooks;
	real_group = t->group.group;
	if (t->zero)
		t->m->hooks.after_unit = skip_unit;
	else if (t->sharded)
		t->m->hooks.after_update = NULL;
	else
		t->group.group.start = skip_sum;
}
static void train(const Place *p)
{
	const Fault *f = p->context;
	const CommSettings by_ring = { .transport = "ring", .limit_s = f->limit_s };
	bool faulty = p->rank == f->rank;
	Trained t;
	omp_set_num_threads(1);
	openblas_set_num_threads(1);
	Device *d = device_open("cpu");
	Comm *c = comm_open(link_tcp(p->rank, p->ranks, &p->meeting, 20), d,
		&by_ring);
	build(&t, d, c, f->strategy);
	if (faulty && f->happens) {
		signal(SIGALRM, f->happens);
		setitimer(ITIMER_REAL, &(struct itimerval){
			.it_value.tv_usec = f->after_us }, NULL);
	}
	for (int step = 0;; step++) {
		Batch b = batch_random(B, shape.context, shape.vocab, step);
		if (faulty && !f->happens && step == ASTRAY)
			go_astray(&t);
		timed_step(t.m, t.o, &b, MODE_TRAIN);
		if (faulty && !f->happens && step == ASTRAY && t.sharded)
			t.m->hooks = real_hooks;
		batch_free(&b);
	}
}
static bool names_operation(const char *said)
{
	static const char *const others[] = { "gather ", "sum ", "maximum ",
		"barrier ", "comparison of orders " };
	bool found = false;
	for (int i = 0; i < NCOLLECTIVES; i++)
		found |= strstr(said, collective_names[i]) != NULL;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		found |= strstr(said, others[i]) != NULL;
	return found;
}

/* one line, which begins with the rank */
static void check_line(const Fault *f, const char *said, int rank)
{
	char start[64];
	snprintf(start, sizeof start, "%s: rank %d: ", program_name, rank);
	const char *end = strchr(said, '\n');
	if (strncmp(said, start, strlen(start)) != 0 || !end || end[1])
		fail_msg("%s: rank %d says '%s'", names[f->strategy], rank, said);
}

/* the faulty rank ends with `status`, the others with 1 */
static void expect_end(Fault *f, int status, const char *want)
{
	Ended ended[MOST];
	bool named = false;
	double start_ms = clock_ms();
	run_ranks(RANKS, ended, train, f);
	for (int r = 0; r < RANKS; r++) {
		if (ended[r].status != (r == f->rank ? status : 1))
			fail_msg("%s: rank %d ends with %d: %s", names[f->strategy], r,
				ended[r].status, ended[r].said);
		if (r == f->rank && status != 1)
			continue;
		check_line(f, ended[r].said, r);
		named |= strstr(ended[r].said, want) && names_operation(ended[r].said);
	}
	if (!named)
		fail_msg("%s: nobody says '%s' and where: '%s'", names[f->strategy],
			want, ended[!f->rank].said);
	assert_true(clock_ms() - start_ms < 20e3);
}

static void try_strategies(Strategy first, void (*happens)(int), int limit_s,
	int status, const char *want)
{
	for (Strategy s = first; s < NSTRATEGIES; s++) {
		uint64_t bits = random_bits((uint64_t)clock_ms(), 0, s);
		Fault f = { s, (int)(bits % RANKS), happens,
			1 + (int)(bits >> 33) % 60000, limit_s };
		char said[64];
		snprintf(said, sizeof said, want, f.rank);
		expect_end(&f, status, said);
	}
}

static void be_killed(int signal)
{
	kill(getpid(), SIGKILL);
}

static void stop(int signal)
{
	kill(getpid(), SIGSTOP);
}

static void walk_out(int signal)
{
	_exit(0);
}

static void killed_ranks_end_every_strategy(void **state)
{
	try_strategies(DDP, be_killed, 10, -SIGKILL, "lost rank %d in");
}

static void ranks_that_leave_end_every_strategy(void **state)
{
	try_strategies(DDP, walk_out, 10, 0, "lost rank %d in");
}

static void stopped_ranks_end_every_strategy(void **state)
{
	try_strategies(DDP, stop, 1, -SIGSTOP, "has not ended after 1 s");
}

static void skipped_collectives_end_every_strategy(void **state)
{
	try_strategies(SHARDED, NULL, 10, 1, "rank %d is in");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_ranks_end_every_strategy),
		cmocka_unit_test(ranks_that_leave_end_every_strategy),
		cmocka_unit_test(stopped_ranks_end_every_strategy),
		cmocka_unit_test(skipped_collectives_end_every_strategy),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
