#include "estimate/cost.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/buckets.h"
#include "base/error.h"
#include "base/prefetch.h"

// find the bubble of a pipeline
double cost_pipeline(double t, long stages, long microbatches, long interleave)
{
	return t * (microbatches + (stages - 1.0) / interleave);
}

// refuse runs that cannot be
const char *cost_error(const CostRun *r)
{
	const CostShape *s = &r->shape;
	if (!(r->tokens >= 1))
		return "a rank has no token";
	if (!(s->d_model >= 1 && s->d_ff >= 1 && s->layers >= 1 && s->matrices >= 2))
		return "every dimension is at least 1, a feed-forward layer has 2 or 3 "
			"matrices";
	if (r->data < 1 || r->tensor < 1 || r->parts < 1 || r->stages < 1
		|| r->microbatches < 1 || r->interleave < 1 || r->prefetch < 0)
		return "every number of ranks, microbatches and runs is at least 1";
	if (r->stages > s->layers || r->stages * r->interleave > s->layers)
		return "a stage of the pipeline has no block";
	if (s->heads > 0 ? fmod(s->heads, r->tensor) != 0
		: fmod(s->d_ff, r->tensor) != 0)
		return "heads do not divide by the ranks of tensor parallelism";
	if (r->strategy == COST_FSDP && r->stages > 1)
		return "weights that are gathered for each microbatch have no pipeline";
	if (r->strategy == COST_FSDP && r->fp8 > 0)
		return "FSDP gathers no codes of FP8";
	if (r->strategy == COST_SINGLE && r->data > 1)
		return "single is for one rank";
	return NULL;
}

// build a step from tasks
typedef struct StepBuilder {
	const CostMachine *m;
	const CostRun *r;
	QueueSchedule s;
	CostGroup group;
	/* how many units; each queue's last task, or -1 */
	int units, computed, sent;
	int wait, tensor;                /* tasks that computing waits for next */
	/* elements of the open bucket; minus all elements so far, where the next
	 * tensor would lie if the first one ended at 0 */
	BucketCutter cutter;
	double bucket, walked;
	int bucket_after;
	int *gathered;                   /* the gather of each unit */
	int freed[2];                    /* the scatter that frees a gradient slot */
	Prefetcher prefetcher;           /* of FSDP's units */
} StepBuilder;

// count the elements of a unit
static CostUnit kind_of(const StepBuilder *b, int unit)
{
	return unit == 0 ? UNIT_EMBEDDING : unit == b->units - 1 ? UNIT_HEAD
		: UNIT_BLOCK;
}

/* elements of a unit on the device, without gains */
static double unit_elements(const StepBuilder *b, int unit)
{
	const CostShape *s = &b->r->shape;
	bool block = kind_of(b, unit) == UNIT_BLOCK;
	double gains = s->heads > 0 ? 2 * s->d_model : 0;
	return block ? (cost_block_tensors(s, NULL) - gains) / b->r->tensor
		: s->vocab * s->d_model / b->r->tensor / b->r->stages;
}

// queue computing and collectives
static void queue_compute(StepBuilder *b, double ms)
{
	b->computed = schedule_add(&b->s, COMPUTE_QUEUE, ms, b->wait, b->tensor);
}

static int queue_collective_after(StepBuilder *b, CostCollective what,
	double nbytes, int after)
{
	double ms = cost_collective(b->m, what, b->group, nbytes);
	b->sent = schedule_add(&b->s, COMM_QUEUE, ms, after, -1);
	return b->sent;
}

static int queue_collective(StepBuilder *b, CostCollective what, double nbytes)
{
	return queue_collective_after(b, what, nbytes, b->computed);
}

static void wait_for(StepBuilder *b, int task)
{
	b->wait = task > b->wait ? task : b->wait;
}

static void queue_unit_pass(StepBuilder *b, int unit, bool backward)
{
	CostUnit kind = kind_of(b, unit);
	double tensor_ms = cost_tensor_ms(b->m, b->r, kind, backward);
	queue_compute(b, cost_unit_ms(b->m, b->r, kind, backward));
	if (tensor_ms > 0)
		b->tensor = schedule_add(&b->s, TENSOR_QUEUE, tensor_ms, b->computed, -1);
}

// send gradients by parameter or by bucket
static void close_bucket(StepBuilder *b)
{
	if (b->bucket > 0)
		queue_collective_after(b, COST_ALL_REDUCE, b->bucket * b->r->wire,
			b->bucket_after);
	b->bucket = 0;
}

static void add_tensor(StepBuilder *b, double n)
{
	CostStrategy s = b->r->strategy;
	b->cutter.most = s == COST_BUCKETED || s == COST_SHARDED
		? b->r->bucket_mb * 1e6 / b->r->wire : s == COST_FLAT ? INFINITY : 0;
	b->walked -= n;
	if (n > 0 && bucket_begins(&b->cutter, b->walked, n))
		close_bucket(b);
	b->bucket = b->cutter.end - b->walked;
	b->bucket_after = b->computed;
}

// walk through the gradients of a unit
/* elements of tensor i of a unit in the order in which gradients appear; -1:
 * there is no tensor i */
static double tensor_elements(const StepBuilder *b, int unit, int i)
{
	const CostShape *s = &b->r->shape;
	double tensors[COST_TENSORS], table = unit_elements(b, unit);
	switch (kind_of(b, unit)) {
	case UNIT_EMBEDDING:
		return i == 0 ? table : -1;
	case UNIT_HEAD:
		return i == 0 ? table : i == 1 && s->vocab > 0 && s->heads > 0
			? s->d_model : -1;
	default:
		cost_block_tensors(s, tensors);
		return i < COST_TENSORS ? tensors[COST_TENSORS - 1 - i] / b->r->tensor
			: -1;
	}
}

static void add_unit(StepBuilder *b, int unit)
{
	double n;
	for (int i = 0; (n = tensor_elements(b, unit, i)) >= 0; i++)
		add_tensor(b, n);
}

// broadcast what owners have updated
/* the course's sharded optimizer: every owner broadcasts the parameters that
 * it has updated */
static void broadcast_all(StepBuilder *b)
{
	double n;
	for (int u = 0; u < b->units; u++)
		for (int i = 0; (n = tensor_elements(b, u, i)) >= 0; i++)
			queue_collective(b, COST_BROADCAST, n * b->r->real);
	wait_for(b, b->sent);
	queue_compute(b, 0);
}

// gather a unit
/* queues the gather of a unit. FSDP first copies the rank's own part to the
 * slot */
static void gather(void *self, int unit)
{
	StepBuilder *b = self;
	const CostRun *r = b->r;
	bool table = kind_of(b, unit) == UNIT_EMBEDDING;
	double n = unit_elements(b, unit), own = r->strategy == COST_FSDP
		? 2 * n / r->data * (table ? r->real : r->low) : 0;
	if (own > 0)
		schedule_add(&b->s, COMM_QUEUE, own / b->m->GBps * 1e-6, b->computed, -1);
	b->gathered[unit] = queue_collective(b, COST_ALL_GATHER, n * (table
		? r->real
		: r->gather));
}

static void enter_fsdp_unit(StepBuilder *b, int unit)
{
	prefetcher_visit(&b->prefetcher, unit);
	wait_for(b, b->gathered[unit]);
}

// sum gradients of a unit to their owners
static void scatter_unit(StepBuilder *b, int unit)
{
	const CostShape *s = &b->r->shape;
	double gains = s->heads > 0 ? (2 * cost_blocks(b->r) + 1) * s->d_model : 0;
	if (unit == 1)
		queue_collective(b, COST_ALL_REDUCE, gains * b->r->wire);
	b->freed[unit % 2] = queue_collective(b, COST_REDUCE_SCATTER,
		unit_elements(b, unit) * b->r->wire);
}

// queue one microbatch
static void forward_unit(StepBuilder *b, int unit)
{
	CostStrategy s = b->r->strategy;
	if (s == COST_FSDP && unit == 0)
		prefetcher_begin_pass(&b->prefetcher);
	if (s == COST_FSDP)
		enter_fsdp_unit(b, unit);
	else if (s == COST_ZERO1 || s == COST_ZERO2)
		wait_for(b, b->gathered[unit]);
	queue_unit_pass(b, unit, false);
}

static void backward_unit(StepBuilder *b, int unit, bool last)
{
	CostStrategy s = b->r->strategy;
	if (s == COST_FSDP && (unit > 0 || b->r->prefetch > 0))
		enter_fsdp_unit(b, unit);
	if (s == COST_FSDP || s == COST_ZERO2)
		wait_for(b, b->freed[unit % 2]);
	queue_unit_pass(b, unit, true);
	if (!last && s != COST_FSDP)
		return;
	if (s >= COST_ZERO1)
		scatter_unit(b, unit);
	else if (s == COST_OVERLAP || s == COST_BUCKETED || s == COST_SHARDED)
		add_unit(b, unit);
}

// queue the microbatches in between
/* queues, as one task, all passes but the first microbatch's forward pass
 * and the last one's backward pass, and the bubble */
static void queue_between(StepBuilder *b, double bubble_ms)
{
	double ms = 0, tensor_ms = 0, times = b->r->microbatches - 1;
	for (int u = 0; u < b->units; u++)
		for (int backward = 0; backward < 2; backward++) {
			ms += cost_unit_ms(b->m, b->r, kind_of(b, u), backward);
			tensor_ms += cost_tensor_ms(b->m, b->r, kind_of(b, u), backward);
		}
	if (times * ms + bubble_ms > 0)
		queue_compute(b, times * ms + bubble_ms);
	if (times * tensor_ms > 0)
		b->tensor = schedule_add(&b->s, TENSOR_QUEUE, times * tensor_ms,
			b->computed, -1);
}

static void queue_passes(StepBuilder *b, double bubble_ms)
{
	long whole = b->r->strategy == COST_FSDP ? b->r->microbatches : 1;
	for (long i = 0; i < whole; i++) {
		for (int u = 0; u < b->units; u++)
			forward_unit(b, u);
		if (whole == 1 && b->r->strategy != COST_FSDP)
			queue_between(b, bubble_ms);
		for (int u = b->units - 1; u >= 0; u--)
			backward_unit(b, u, i == whole - 1);
	}
}

// queue a step, and time it
static double microbatch_ms(const StepBuilder *b)
{
	double ms = 0;
	for (int u = 0; u < b->units; u++)
		for (int backward = 0; backward < 2; backward++)
			ms += cost_unit_ms(b->m, b->r, kind_of(b, u), backward)
				+ cost_tensor_ms(b->m, b->r, kind_of(b, u), backward);
	return ms;
}

/* ms of the pipeline's bubble, with the time to pass a microbatch from stage
 * to stage in both directions */
static double bubble_time(const StepBuilder *b)
{
	const CostRun *r = b->r;
	double hop = r->stages > 1 ? 2 * (b->m->far.step_us * 1e-3 + r->tokens
		* r->shape.d_model * r->low / (r->tensor * r->parts) / b->m->far.GBps
		* 1e-6) : 0, t = microbatch_ms(b) + r->interleave * hop;
	return cost_pipeline(t, r->stages, r->microbatches, r->interleave)
		- t * r->microbatches;
}

// queue the tasks of a step
static void queue_step(StepBuilder *b, double bubble_ms)
{
	CostStrategy s = b->r->strategy;
	b->cutter.open = false;
	b->walked = 0;
	queue_passes(b, bubble_ms);
	if (s == COST_NAIVE || s == COST_FLAT)
		for (int u = b->units - 1; u >= 0; u--)
			add_unit(b, u);
	close_bucket(b);
	wait_for(b, b->sent);
	queue_compute(b, cost_update_ms(b->m, b->r));
	if (s == COST_SHARDED)
		broadcast_all(b);
	for (int u = 0; u < b->units && (s == COST_ZERO1 || s == COST_ZERO2); u++)
		gather(b, u);
	if (s == COST_FSDP)
		prefetcher_renew(&b->prefetcher);
}

static StepBuilder builder_new(const CostMachine *m, const CostRun *r)
{
	int units = cost_blocks(r) + 2;
	StepBuilder b = { .m = m, .r = r, .group = cost_data_group(m, r),
		.units = units, .computed = -1, .sent = -1, .wait = -1, .tensor = -1,
		.bucket_after = -1, .freed = { -1, -1 },
		.prefetcher = prefetcher_new((int)r->prefetch, gather, NULL) };
	b.gathered = need(malloc(units * sizeof *b.gathered));
	for (int u = 0; u < units; u++)
		b.gathered[u] = -1;
	for (int i = 0; i < 2 * units - 1; i++)          /* up, and down again */
		prefetcher_expect(&b.prefetcher, i, i < units ? i
			: 2 * (units - 1) - i);
	return b;
}

// queue several steps
/* ends[i]: the last task of step i that computes */
static QueueSchedule queue_steps(const CostMachine *m, const CostRun *r,
	int steps, int *ends, double *bubble_ms)
{
	StepBuilder b = builder_new(m, r);
	b.prefetcher.self = &b;
	*bubble_ms = bubble_time(&b);
	for (int i = 0; i < steps; i++) {
		queue_step(&b, *bubble_ms);
		ends[i] = b.computed;
	}
	free(b.gathered);
	prefetcher_free(&b.prefetcher);
	return b.s;
}

QueueSchedule cost_schedule(const CostMachine *m, const CostRun *r, int steps)
{
	double bubble_ms;
	int *ends = need(malloc(steps * sizeof *ends));
	assert(cost_error(r) == NULL);
	QueueSchedule s = queue_steps(m, r, steps, ends, &bubble_ms);
	free(ends);
	return s;
}

// simulate steps, and take the last one
static CostStep simulate_step(const CostMachine *m, const CostRun *r)
{
	enum { STEPS = 4 };
	CostStep step = { .nbytes = cost_memory(r) };
	int ends[STEPS];
	QueueSchedule s = queue_steps(m, r, STEPS, ends, &step.bubble_ms);
	schedule_run(&s, m->stretch);
	step.step_ms = s.tasks[ends[STEPS - 1]].end_ms
		- s.tasks[ends[STEPS - 2]].end_ms;
	step.compute_ms = schedule_sum(&s, COMPUTE_QUEUE) / STEPS - step.bubble_ms;
	step.comm_ms = (schedule_sum(&s, COMM_QUEUE)
		+ schedule_sum(&s, TENSOR_QUEUE)) / STEPS;
	schedule_free(&s);
	return step;
}

// extrapolate over microbatches
/* the step of a run; FSDP's microbatches are alike from the second on */
CostStep cost_step(const CostMachine *m, const CostRun *r)
{
	enum { ENOUGH = 4 };
	CostRun few = *r;
	assert(cost_error(r) == NULL);
	if (r->strategy != COST_FSDP || r->microbatches <= ENOUGH)
		return simulate_step(m, r);
	few.microbatches = ENOUGH - 1;
	CostStep fewer = simulate_step(m, &few);
	few.microbatches = ENOUGH;
	CostStep step = simulate_step(m, &few);
	double more = r->microbatches - ENOUGH;
	step.step_ms += more * (step.step_ms - fewer.step_ms);
	step.compute_ms += more * (step.compute_ms - fewer.compute_ms);
	step.comm_ms += more * (step.comm_ms - fewer.comm_ms);
	return step;
}

double cost_alone(const CostMachine *m, const CostRun *r)
{
	QueueSchedule s = cost_schedule(m, r, 1);
	double ms = schedule_sum(&s, COMM_QUEUE);
	schedule_free(&s);
	return ms;
}
