#include "cases/cost_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/fit.h"
#include "base/stats.h"

// choose the rows of a fit
bool cost_fit_used(const CostFit *f, const MeasuredStep *s)
{
	return !s->divided && strcmp(s->size, f->size) == 0
		&& s->ranks == FIT_RANKS && strcmp(s->precision, f->precision) == 0
		&& (f->via == NULL || strcmp(s->via, f->via) == 0);
}

/* a flat row has all that the fit of one device needs */
static const MeasuredStep *flat_row(const Measurements *seen, const char *size)
{
	const char *precision = seen->gpu ? "bf16" : "fp32";
	for (int i = 0; i < seen->nsteps; i++) {
		const MeasuredStep *s = &seen->steps[i];
		if (s->run.strategy == COST_FLAT && s->ranks == FIT_RANKS
			&& strcmp(s->size, size) == 0 && s->run.fwd_ms > 0
			&& strcmp(s->precision, precision) == 0)
			return s;
	}
	return NULL;
}

// fit what one device does
/* sets ms[0], ms[1]: both passes of one rank, by the constants */
static void passes_ms(const CostMachine *m, CostRun r, double ms[2])
{
	QueueSchedule s;
	r.fwd_ms = r.bwd_ms = r.opt_ms = 0;
	r.strategy = COST_SINGLE;
	r.data = 1;
	s = cost_schedule(m, &r, 1);
	ms[0] = ms[1] = 0;
	for (int i = 0; i < s.n - 1; i++)
		ms[i >= (s.n - 1) / 2] += s.tasks[i].ms;
	schedule_free(&s);
}

// find the rates of a device from a row
static void fit_device(CostMachine *m, const CostRun *r, double TFLOPs)
{
	double ms[2], bare = INFINITY, blocks = r->shape.layers;
	CostRun one = *r;
	m->GBps = m->TFLOPs = 1;
	one.strategy = COST_SINGLE;
	one.data = 1;
	one.gradient = one.real;
	one.opt_ms = 0;
	QueueSchedule s = cost_schedule(m, &one, 1);
	m->GBps = s.tasks[s.n - 1].ms / r->opt_ms;
	schedule_free(&s);
	m->TFLOPs = TFLOPs;
	if (!(TFLOPs > 0)) {
		/* no peak is known: the rate is what the forward pass reaches */
		m->TFLOPs = INFINITY;
		passes_ms(m, *r, ms);
		bare = fmax(r->fwd_ms - ms[0], 1e-3 * r->fwd_ms);
		m->TFLOPs = cost_forward_flops(&r->shape, r->context) * r->tokens
			/ bare * 1e-9;
	}
	passes_ms(m, *r, ms);
	m->forward_us = fmax(r->fwd_ms - ms[0], 0) / blocks * 1e3;
	m->backward_us = fmax(r->bwd_ms - ms[1], 0) / blocks * 1e3;
}

// fit collectives
enum { CALLS, WHOLES, HALVES, BROADCAST_CALLS, ADDED, ROOTS };

static CostMachine unit_machine(const CostMachine *m, int unknown)
{
	const double nothing = -1;
	CostMachine u = *m;
	bool sends = unknown == WHOLES || unknown == HALVES;
	u.call_us = unknown == CALLS;
	u.near = u.far = (CostLink){ sends ? 1 : INFINITY, 0 };
	u.byte_cost[COST_ALL_REDUCE] = unknown == WHOLES ? 1 : nothing;
	for (int k = COST_REDUCE_SCATTER; k < COST_COLLECTIVES; k++)
		u.byte_cost[k] = unknown == HALVES ? 1 : nothing;
	u.broadcast_us = unknown == BROADCAST_CALLS;
	u.sum_ms_per_GB = unknown == ADDED;
	u.pieces_us = unknown == ROOTS;
	return u;
}

// turn a solution into constants
/* x: the solution; collectives without a row of their own cost as much per byte
 * as those that have one */
static void set_link(CostMachine *m, const double x[MOST_UNKNOWN])
{
	double whole = x[WHOLES] > 0 ? x[WHOLES] : x[HALVES];
	m->call_us = x[CALLS];
	m->near = m->far = (CostLink){ whole > 0 ? 1 / whole : INFINITY, 0 };
	m->byte_cost[COST_ALL_REDUCE] = 1;
	for (int k = COST_REDUCE_SCATTER; k < COST_COLLECTIVES; k++)
		m->byte_cost[k] = x[HALVES] > 0 ? x[HALVES] / whole : 1;
	m->broadcast_us = x[BROADCAST_CALLS];
	m->sum_ms_per_GB = x[ADDED];
	m->pieces_us = x[ROOTS];
}

// fit collectives that were timed alone
static void fit_alone(const Measurements *seen, CostFit *f)
{
	double (*a)[MOST_UNKNOWN] = need(calloc(seen->nsteps + 1, sizeof *a)),
		*b = need(calloc(seen->nsteps + 1, sizeof *b)), x[MOST_UNKNOWN], sum = 0;
	int n = 0;
	for (int i = 0; i < seen->nsteps; i++) {
		const MeasuredStep *s = &seen->steps[i];
		if (!cost_fit_used(f, s) || !(s->alone_ms > 0) || s->run.data < 2)
			continue;
		for (int j = 0; j < MOST_UNKNOWN; j++) {
			CostMachine u = unit_machine(&f->machine, j);
			a[n][j] = cost_alone(&u, &s->run);
		}
		b[n++] = s->alone_ms;
	}
	fit_positive(n, MOST_UNKNOWN - 1, a, b, x);
	set_link(&f->machine, x);
	for (int i = 0; i < n; i++) {
		double fitted = 0;
		for (int j = 0; j < MOST_UNKNOWN; j++)
			fitted += a[i][j] * x[j];
		sum += (fitted / b[i] - 1) * (fitted / b[i] - 1);
	}
	f->alone_rms = n > 0 ? sqrt(sum / n) : 0;
	f->rows = n;
	free(a);
	free(b);
}

// fit one collective of a transport
bool cost_fit_size(double nbytes)
{
	return nbytes == 1e6 || nbytes == 1e7 || nbytes == 1e8 || nbytes == 1e9;
}

static bool is_of_fit(const MeasuredCollective *c, const MeasuredCollective *of)
{
	return c->what == of->what && c->ranks == FIT_RANKS
		&& strcmp(c->device, of->device) == 0
		&& strcmp(c->transport, of->transport) == 0
		&& strcmp(c->dtype, "fp32") == 0 && cost_fit_size(c->nbytes);
}

bool cost_fit_collective(const Measurements *seen, const MeasuredCollective *of,
	CostMachine *m)
{
	double (*a)[MOST_UNKNOWN] = need(calloc(seen->ncollectives + 1, sizeof *a)),
		*b = need(calloc(seen->ncollectives + 1, sizeof *b)), x[MOST_UNKNOWN];
	int n = 0;
	for (int i = 0; i < seen->ncollectives; i++) {
		const MeasuredCollective *c = &seen->collectives[i];
		if (!is_of_fit(c, of))
			continue;
		for (int j = 0; j < MOST_UNKNOWN; j++) {
			CostMachine u = unit_machine(m, j);
			a[n][j] = cost_collective(&u, c->what,
				(CostGroup){ c->ranks, c->ranks }, c->nbytes);
		}
		b[n++] = c->time_ms;
	}
	fit_positive(n, MOST_UNKNOWN, a, b, x);
	set_link(m, x);
	free(a);
	free(b);
	return n > 0;
}

// fit the stretch
static double stretch(double both, double longer)
{
	enum { MOST = 4 };
	if (!(both > 0) || !(longer > 0))
		return 1;
	return longer < both * (MOST - 1) / MOST ? both / (both - longer) : MOST;
}

// take the median stretch of overlapping steps
static void fit_stretch(const Measurements *seen, CostFit *f)
{
	double *compute = need(malloc((seen->nsteps + 1) * sizeof *compute)),
		*comm = need(malloc((seen->nsteps + 1) * sizeof *comm));
	int n = 0;
	for (int i = 0; i < seen->nsteps; i++) {
		const MeasuredStep *s = &seen->steps[i];
		if (!cost_fit_used(f, s) || !(s->single_bwd_ms > 0)
			|| (s->run.strategy != COST_OVERLAP
			&& s->run.strategy != COST_BUCKETED))
			continue;
		double both = fmin(s->comm_ms - s->wait_ms, s->bwd_ms);
		compute[n] = stretch(both, s->bwd_ms - s->single_bwd_ms);
		comm[n++] = stretch(both, s->comm_ms - s->alone_ms);
	}
	f->machine.stretch = n > 0 ? (QueueStretch){ stats_of(compute, n).median,
		stats_of(comm, n).median } : (QueueStretch){ 1, 1 };
	free(compute);
	free(comm);
}

// find what a rank with a part takes
static double pass_ms(const CostMachine *m, const CostRun *r, bool backward)
{
	return cost_unit_ms(m, r, UNIT_EMBEDDING, backward)
		+ cost_blocks(r) * cost_unit_ms(m, r, UNIT_BLOCK, backward)
		+ cost_unit_ms(m, r, UNIT_HEAD, backward);
}

// find the part of a pass that a rank takes
/* time of the part over time of the whole in a pass, with the rate of matmuls at
 * which the whole takes ms */
static double part_of_pass(CostMachine m, const CostRun *whole,
	const CostRun *part,
	bool backward, double ms)
{
	double low = m.TFLOPs * 1e-3, high = m.TFLOPs * 1e3;
	for (int i = 0; i < 60; i++) {
		m.TFLOPs = sqrt(low * high);
		*(pass_ms(&m, whole, backward) > ms ? &low : &high) = m.TFLOPs;
	}
	return pass_ms(&m, part, backward) / pass_ms(&m, whole, backward);
}

CostRun cost_fit_run(const CostFit *f, const MeasuredStep *s)
{
	CostRun r = s->run, part = r;
	if (!s->divided || !(r.fwd_ms > 0))
		return r;
	part.fwd_ms = part.bwd_ms = 0;
	CostRun whole = part;
	whole.tokens *= whole.data;
	whole.data = whole.tensor = 1;
	whole.shape.heads = whole.shape.kv_heads = r.shape.d_model / r.shape.d_head;
	r.fwd_ms *= part_of_pass(f->machine, &whole, &part, false, r.fwd_ms);
	r.bwd_ms *= part_of_pass(f->machine, &whole, &part, true, r.bwd_ms);
	r.opt_ms /= r.tensor;
	return r;
}

// fit a machine
static double step_rms(const Measurements *seen, const CostFit *f)
{
	double sum = 0;
	int n = 0;
	for (int i = 0; i < seen->nsteps; i++) {
		const MeasuredStep *s = &seen->steps[i];
		if (!cost_fit_used(f, s) || !(s->run.fwd_ms > 0))
			continue;
		double off = cost_step(&f->machine, &s->run).step_ms / s->step_ms - 1;
		sum += off * off;
		n++;
	}
	return n > 0 ? sqrt(sum / n) : 0;
}

// fit all constants of a machine
CostFit cost_fit(const Measurements *seen, const char *size)
{
	static const char *const sizes[] = { "medium", "large" };
	const MeasuredStep *flat = size ? flat_row(seen, size) : NULL;
	for (int i = 0; i < 2 && size == NULL && flat == NULL; i++)
		flat = flat_row(seen, sizes[i]);
	if (flat == NULL)
		usage_error("%s: no step of %s with flat gradients on %d ranks to fit to",
			seen->folder, size ? size : "medium or large", FIT_RANKS);
	CostFit f = { .size = flat->size, .precision = flat->precision,
		.via = flat->via };
	f.machine = (CostMachine){ .node = 8, .near = { INFINITY, 0 },
		.far = { INFINITY, 0 }, .stretch = { 1, 1 } };
	fit_device(&f.machine, &flat->run, seen->TFLOPs);
	fit_alone(seen, &f);
	fit_stretch(seen, &f);
	f.step_rms = step_rms(seen, &f);
	return f;
}
