#include "bench/timing.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/stats.h"
#include "ops/array.h"

enum { WARMUP = 3 };

// run the work between events
/* graph: what is replayed; NULL: the work is called */
static Timing run_between_events(Device *d, Work *work, void *arg, void *graph,
	int runs)
{
	assert(1 <= runs && runs <= MOST_RUNS);
	for (int i = -WARMUP; i < runs; i++) {
		if (i >= 0)
			device_stamp(d, COMPUTE, i);
		if (graph)
			device_graph_launch(d, graph);
		else
			work(arg);
	}
	device_stamp(d, COMPUTE, runs);
	double *ms = need(malloc(runs * sizeof *ms));
	for (int i = 0; i < runs; i++)
		ms[i] = device_stamped_ms(d, i, i + 1);
	Stats s = stats_of(ms, runs);
	free(ms);
	return (Timing){ s.median, s.sd, s.min, s.max, 0 };
}

// time work as it is called
Timing timed_calls(Device *d, Work *work, void *arg, int runs)
{
	return run_between_events(d, work, arg, NULL, runs);
}

// time work that is captured
Timing timed(Device *d, Work *work, void *arg, int runs)
{
	int kernels = 0;
	work(arg);
	void *graph = device_graph_capture(d, work, arg, &kernels);
	Timing t = run_between_events(d, work, arg, graph, runs);
	t.kernels = kernels;
	device_graph_destroy(d, &graph);
	return t;
}

// time a copy
typedef struct Copy { Device *d; Array to, from; size_t n; } Copy;

static void queue_copy(void *arg)
{
	const Copy *c = arg;
	ops_for(c->d)->cast(c->d, c->to, c->from, c->n);
}

size_t copy_length(const Device *d)
{
	return (size_t)1 << (strcmp(d->backend->name, "cuda") == 0 ? 28 : 25);
}

// time a copy of drawn numbers
void draw_repeated(Device *d, Array x, size_t n, uint64_t seed)
{
	enum { PART = 1 << 20 };
	size_t full = n < PART ? n : PART;
	ops_for(d)->draw(d, x, full, 1, 4, seed, 1, 0);
	for (; full < n; full *= 2)
		ops_for(d)->cast(d, array_part(d, x, full), x, n - full < full ? n - full
			: full);
}

double copy_GBps(Device *d, size_t n, int runs)
{
	Copy c = { d, array_new(d, n, FP32, MEM_TEMPORARY, "copy"),
		array_new(d, n, FP32, MEM_TEMPORARY, "original"), n };
	draw_repeated(d, c.from, n, 1);
	double ms = timed(d, queue_copy, &c, runs).ms;
	device_free(d, c.to.at);
	device_free(d, c.from.at);
	return 2.0 * n * d->backend->width(FP32) / ms * 1e-6;
}
