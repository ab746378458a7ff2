/* the memory estimate of a rank that has a part, against the device's */
#define _GNU_SOURCE
#include "estimate/memory_estimate.h"
#include "tests/dist/parts.h"

enum { LONG = 48 };
static const Shape part_shape = { 50, LONG, 64, 161, 8, 5, 16, 10000 };

// end the program unless bytes are equal
static void expect_equal(double got, double wanted, const char *what,
	const Parts *p, int rank)
{
	if (got != wanted)
		die("rank %d of %d, %s, %d blocks again, naive %d, %s: %.0f bytes, "
			"derived %.0f", rank, p->ranks, policies[p->policy].name,
			p->recompute, p->naive, what, got, wanted);
}

// compare the estimate with a step's peaks
static void check_memory(Device *d, Comm *c, void *parts)
{
	const Parts *p = parts;
	size_t before[NCATEGORIES], total = d->total;
	memcpy(before, d->active, sizeof before);
	TensorGroup t;
	tensor_group(&t, d, c);
	t.group.keep_norms = p->keep_norms;
	Model *m = part_of(d, p, &t.group);
	Optimizer o = optimizer_of(m, p);
	Batch b = batch_random(p->B, p->T, p->shape.vocab, 1);
	timed_step(m, &o, &b, MODE_TRAIN);
	device_reset_peak(d);
	timed_step(m, &o, &b, MODE_TRAIN);
	MemoryEstimate e = memory_estimate(m, p->B, p->T, true);
	for (int k = 0; k < NCATEGORIES; k++)
		expect_equal(d->peak[k] - before[k], e.category[k], category_names[k], p,
			comm_rank(c));
	expect_equal(d->total_peak - total, e.total, "total", p, comm_rank(c));
	batch_free(&b);
	optimizer_free(&o);
	model_free(&m);
}

// try groups of all sizes
static void estimate_of_a_part_is_met(void **state)
{
	for (int ranks = 1; ranks <= MOST; ranks++)
		for (int i = 0; i < 8; i += ranks == 3 ? 1 : i % 4 == 0 ? 3 : 1) {
			Parts p = { .ranks = ranks, .shape = part_shape, .B = 4, .T = LONG,
				.policy = i % 2 ? POLICY_BF16 : POLICY_FP32,
				.recompute = i / 2 % 2 * 2, .nested = i == 7,
				.naive = i / 4, .keep_norms = (i + ranks) % 2 };
			in_ranks(ranks, by_ring, check_memory, &p);
		}
}

TESTS(cmocka_unit_test(estimate_of_a_part_is_met))
