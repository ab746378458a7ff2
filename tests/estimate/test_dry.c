/* steps on dry devices: the same allocations, no work, and no time */
#define _GNU_SOURCE
#include <omp.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "dist/dry.h"
#include "estimate/memory_estimate.h"
#include "model/sizes.h"
#include "ops/dry.h"
#include "tests/base/exits.h"
#include "tests/ops/compare.h"

// test: a dry step allocates what a step does
static void train(Device *d, int policy, bool fused, int K)
{
	const Shape shape = { 300, 32, 64, 160, 3, 4, 16, 10000 };
	Model *m = model_new(d, &shape, &policies[policy], 1);
	if (fused)
		model_fuse(m);
	model_recompute(m, K, false);
	Optimizer adamw = adamw_new(m, 1e-3, 0.9, 0.999, 1e-8, 0.01);
	Batch b = batch_random(2, 32, shape.vocab, 1);
	device_log_memory(d, true);
	for (int step = 0; step < 2; step++)
		timed_step(m, &adamw, &b, MODE_TRAIN);
	device_log_memory(d, false);
	batch_free(&b);
	optimizer_free(&adamw);
	model_free(&m);
}

static void expect_alike(const Device *dry, const Device *cpu)
{
	assert_int_equal(dry->nlog, cpu->nlog);
	assert_true(cpu->nlog > 100);
	for (size_t i = 0; i < cpu->nlog; i++) {
		const MemoryEvent *a = &dry->log[i], *b = &cpu->log[i];
		if (a->nbytes != b->nbytes || a->category != b->category
			|| strcmp(a->what, b->what) != 0)
			fail_msg("event %zu: %s of %td bytes (%s), on the CPU %s of %td "
				"(%s)", i, a->what, a->nbytes, category_names[a->category],
				b->what, b->nbytes, category_names[b->category]);
	}
	for (int k = 0; k < NCATEGORIES; k++)
		assert_int_equal(dry->peak[k], cpu->peak[k]);
}

static void dry_steps_allocate_alike(void **state)
{
	for (int i = 0; i < 8; i++) {
		Device *dry = dry_device("cpu"), *cpu = device_open("cpu");
		train(dry, i % 2 ? POLICY_BF16 : POLICY_FP32, i / 2 % 2, i / 4);
		train(cpu, i % 2 ? POLICY_BF16 : POLICY_FP32, i / 2 % 2, i / 4);
		expect_alike(dry, cpu);
		device_close(&dry);
		device_close(&cpu);
	}
}

// test: nobody touches dry memory
static void write_dry_memory(void *array)
{
	signal(SIGSEGV, SIG_DFL);
	*(volatile char *)((Array *)array)->at = 1;
}

static void nobody_touches_dry_memory(void **state)
{
	for (int i = 0; i < 2; i++) {
		Device *d = dry_device(i ? "cuda" : "cpu");
		real x[] = { 1, 2 };
		size_t huge = (size_t)1 << 45;
		Array a = array_new(d, 2, FP32, MEM_PARAMETER, "two"),
			b = array_new(d, huge, BF16, MEM_ACTIVATION, "huge");
		array_write(d, a, x, 2);
		array_read(d, x, a, 2);
		assert_true(x[0] == 0 && x[1] == 0);
		assert_int_equal(d->active[MEM_ACTIVATION],
			huge * d->backend->width(BF16));
		assert_true(exit_status(write_dry_memory, &a) != 0);
		assert_true(exit_status(write_dry_memory, &b) != 0);
		device_free(d, a.at);
		device_free(d, b.at);
		device_close(&d);
	}
}

// test: a link without ranks answers
static size_t bytes_of_array(const char *transport)
{
	Device *d = dry_device("cuda");
	Comm *c = comm_open(link_dry(3, 9), d,
		&(CommSettings){ .transport = transport });
	assert_true(comm_rank(c) == 3 && comm_ranks(c) == 9);
	Array x = comm_array(c, 100, BF16, MEM_GRADIENT, "gradients");
	size_t nbytes = d->active[MEM_GRADIENT];
	comm_all_reduce(c, x, 100, "gradients", 0);
	assert_true(comm_sum(c, 2.5) == 22.5 && comm_max(c, 2.5) == 2.5);
	comm_check_order(c);
	comm_close(&c);
	device_close(&d);
	return nbytes;
}

static void absent_ranks_answer(void **state)
{
	assert_int_equal(bytes_of_array("symmetric"), 256);
	assert_int_equal(bytes_of_array(NULL), 256);
	assert_int_equal(bytes_of_array("push"), SHARED_UNIT);
}

// test: what a block saves is derived
static double saved(const Shape *shape, int policy, bool fused, double *derived)
{
	Device *d = dry_device("cuda");
	Model *m = model_new(d, shape, &policies[policy], 1);
	if (fused)
		model_fuse(m);
	Batch b = batch_random(4, shape->context, shape->vocab, 1);
	model_forward(m, b.tokens, b.targets, b.B, b.T, true);
	double nbytes = (double)d->active[MEM_ACTIVATION]
		+ d->active[MEM_TEMPORARY];             /* casts of weights */
	*derived = memory_estimate_block(m, b.B, b.T);
	batch_free(&b);
	model_free(&m);
	device_close(&d);
	return nbytes;
}

static void blocks_save_what_is_derived(void **state)
{
	for (int i = 0; i < 4 * NSIZES; i++) {
		Shape more = model_sizes[i / 4].shape, shape = more;
		int policy = i % 2 ? POLICY_BF16 : POLICY_FP32;
		double derived;
		more.layers++;
		double block = saved(&more, policy, i / 2 % 2, &derived)
			- saved(&shape, policy, i / 2 % 2, &derived);
		if (!(fabs(block / derived - 1) <= 0.001))
			fail_msg("size %d, %s, %s: a block saves %.0f bytes, derived %.0f",
				i / 4, policies[policy].name, fusion_names[i / 2 % 2], block,
				derived);
	}
}

// test: the largest model takes a fifth of a second
static void the_largest_is_quick(void **state)
{
	Shape shape = model_sizes[SIZE_10B].shape;
	Device *d = dry_device("cuda");
	clock_t before = clock();
	Model *m = model_new_bare(d, &shape, &policies[POLICY_BF16], 1);
	model_fuse(m);
	MemoryEstimate e = memory_estimate_sharded(m, 4, 512, &(Sharding){ .rank = 63,
		.ranks = 64, .settings = { .stage = 3, .prefetch = 1, .wire = BF16 } });
	double seconds = (double)(clock() - before) / CLOCKS_PER_SEC;
	assert_true(e.total > 16e9 && e.total < 20e9);
	if (!(seconds < 0.2))
		fail_msg("the estimate takes %.3f s", seconds);
	model_free(&m);
	device_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dry_steps_allocate_alike),
		cmocka_unit_test(nobody_touches_dry_memory),
		cmocka_unit_test(absent_ranks_answer),
		cmocka_unit_test(blocks_save_what_is_derived),
		cmocka_unit_test(the_largest_is_quick),
	};
	omp_set_num_threads(1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
