#include "cases/cluster.h"
#include "bench/harness.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/random.h"

// plan rings
static long devices = 0, elements = 0;

static const Option options[] = {
	IDEAL_DEVICES_OPTION(&devices, "0..4096", "of one ring; 0: several"),
	{ "elements", OPT_INT, &elements, "0..4194304",
		"of the array, two bytes each; 0: two sizes" },
	{ 0 }
};

typedef struct RingConfig { long N, elements; } RingConfig;
static const Key ring_keys[] = { KEY(RingConfig, N), KEY(RingConfig, elements),
	{ 0 } };

static void plan_rings(Plan *plan)
{
	static const long N[] = { 1, 2, 3, 4, 8, 16, 64 }, n[] = { 6720, 1000 };
	long most = devices ? devices : 64;
	if (most * elements > 1 << 22)
		usage_error("%ld devices of %ld elements are too many to try", most,
			elements);
	for (int j = 0; j < (elements ? 1 : 2); j++)
		for (int i = 0; i < (devices ? 1 : 7); i++)
			plan_add(plan, &(RingConfig){ devices ? devices : N[i],
				elements ? elements : n[j] });
}

// sum on a ring, and compare all devices
typedef void AllReduce(Cluster *c, Axis axis, ClusterArray *part);

/* sums on all devices, and ends the program if a sum is wrong. Returns how many
 * elements have not the same bits on all devices */
static size_t try_ring(Cluster *c, AllReduce *all_reduce, size_t n)
{
	size_t N = cluster_size(c), differ = 0;
	ClusterArray *part = need(malloc(N * sizeof *part));
	// give each device an array of random numbers
	for (size_t d = 0; d < N; d++) {
		part[d] = (ClusterArray){ need(malloc(n * sizeof(double))), n, 1 };
		for (size_t i = 0; i < n; i++)
			part[d].at[i] = random_normal(harness_seed, d, i);
	}
	all_reduce(c, AXIS_X, part);
	// compare the sums of all devices
	for (size_t i = 0; i < n; i++) {
		bool same = true;
		long double sum = 0;
		for (size_t d = 0; d < N; d++) {
			sum += random_normal(harness_seed, d, i);
			same = same && part[d].at[i] == part[0].at[i];
		}
		for (size_t d = 0; d < N; d++)
			if (!(fabs((double)(part[d].at[i] - sum)) < 1e-10))
				die("element %zu of device %zu is %g, not %Lg", i, d,
					part[d].at[i], sum);
		differ += !same;
	}
	for (size_t d = 0; d < N; d++)
		free(part[d].at);
	free(part);
	return differ;
}

// run both all-reduces
static void run_ring(Row *row, const void *config)
{
	const RingConfig *ring = config;
	size_t N = ring->N, n = ring->elements;
	double S = 2.0 * n;
	Cluster *c = cluster_new(N, 1, 2);
	size_t differ = try_ring(c, ring_all_reduce, n);
	row_set(row, "ring_steps", "%zu", c->steps[AXIS_X]);
	row_set(row, "ring_nbytes", "%.10g", 2 * (N - 1.0) / N * S);
	row_set(row, "ring_counted", "%zu", c->axis_nbytes[AXIS_X]);
	row_set(row, "ring_differ", "%zu", differ);
	cluster_reset(c);
	differ = try_ring(c, alternate_ring_all_reduce, n);
	if (c->axis_nbytes[AXIS_X] != (N - 1) * 2 * n)
		die("%zu bytes were counted, not %zu", c->axis_nbytes[AXIS_X],
			(N - 1) * 2 * n);
	row_set(row, "alternate_steps", "%zu", c->steps[AXIS_X]);
	row_set(row, "alternate_nbytes", "%.10g", (N - 1.0) * S);
	row_set(row, "alternate_counted", "%zu", c->axis_nbytes[AXIS_X]);
	row_set(row, "alternate_differ", "%zu", differ);
	cluster_free(&c);
}

// describe the rings to the harness
const Experiment experiment = {
	.about = "two ways to sum arrays round a ring, step by step",
	.options = options, .cpu_scale = CLUSTER_SCALE, .cpu_only = true,
	.sweeps = SWEEPS(
		{ "rings", ring_keys, plan_rings, run_ring }),
};
