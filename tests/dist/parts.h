/* parts.h: a model on one rank, and the same in parts on several */
#ifndef TESTS_PARTS_H
#define TESTS_PARTS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <math.h>

#include "dist/ddp.h"
#include "dist/tensor.h"
#include "tests/ops/compare.h"
#include "tests/dist/job.h"
#include "train/step.h"

// declare a job of parts
typedef struct Parts {
	int ranks, copies;
	Shape shape;
	size_t B, T;                     /* of a copy's batch */
	int policy;
	bool naive, sgd, nested;
	int recompute;
	ModelPlan plan;                  /* of the parts */
	int passes, steps;               /* backward passes of a step */
	double clip;
	int delay_us;
	bool gpus, exchange;             /* exchange: of the copies' gradients */
	bool replayed;                   /* steps of one pass */
	bool keep_norms;
	double tolerance;                /* of the largest of a tensor */
	/* of the model on one rank: (steps); tensors one after the other, gradients
	 * of the first step */
	double *losses;
	real *gradients, *weights;
	/* squared differences from the gradients, of all ranks; or NULL, and no
	 * tolerance is asked for */
	double *squares;
} Parts;

// make and step a part of a model
static inline Model *part_of(Device *d, const Parts *p, const RankGroup *g)
{
	Model *m = model_new_part(d, &p->shape, &policies[p->policy], 7, g);
	model_fuse(m);
	model_set_attention(m, !p->naive);
	model_recompute(m, p->recompute, p->nested);
	if (g)
		model_follow(m, &p->plan);
	return m;
}

static inline Optimizer optimizer_of(const Model *m, const Parts *p)
{
	Optimizer o = p->sgd ? sgd_new(m, 0.1, 0.9)
		: adamw_new(m, 1e-2, 0.9, 0.999, 1e-8, 0.01);
	o.settings.clip = p->clip;
	return o;
}

static inline double step_of(Model *m, Optimizer *o, Replay *replay,
	const Parts *p, int step, int copy)
{
	Batch b = batch_random(p->B, p->T, p->shape.vocab, step * 100 + copy * 10);
	double loss = replayed_step(replay, m, o, &b, MODE_TRAIN).loss;
	batch_free(&b);
	return loss;
}

static inline double pass_of(Model *m, const Parts *p, int step, int copy,
	int pass, bool add)
{
	Batch b = batch_random(p->B, p->T, p->shape.vocab,
		step * 100 + copy * 10 + pass);
	double loss = model_forward(m, b.tokens, b.targets, b.B, b.T, true);
	model_backward(m, add);
	batch_free(&b);
	return loss;
}

// train the whole model on one rank
static inline Device *device_of(const Parts *p, int rank)
{
	return open_device(p->gpus ? "cuda:" : "cpu", rank);
}

static inline void read_all(Model *m, bool gradients, real *to)
{
	for (int i = 0; i < shape_nparameters(&m->shape); i++) {
		size_t n = m->params[i].about.count;
		array_read(m->device, to, gradients ? model_gradient(m, i)
			: model_weight(m, i), n);
		to += n;
	}
}

static inline void train_whole(void *parts)
{
	const Parts *p = parts;
	Device *d = device_of(p, 0);
	Model *m = part_of(d, p, NULL);
	Optimizer o = optimizer_of(m, p);
	m->share = 1.0 / p->copies;
	for (int step = 0; step < p->steps; step++) {
		double loss = 0;
		for (int i = 0; i < p->copies * p->passes; i++)
			loss += pass_of(m, p, step, i / p->passes, i % p->passes, i > 0);
		p->losses[step] = loss;
		if (step == 0)
			read_all(m, true, p->gradients);
		update_weights(m, &o);
	}
	read_all(m, false, p->weights);
	optimizer_free(&o);
	model_free(&m);
	device_close(&d);
}

// compare a part with the whole
static inline double largest_of(const real *x, size_t n)
{
	double most = 0;
	for (size_t i = 0; i < n; i++)
		most = fabs(x[i]) > most ? fabs(x[i]) : most;
	return most;
}

/* ends the program at an element that is too far off; returns the sum of squared
 * differences */
static inline double compare_slice(const Parts *p, const real *got,
	const real *want, const ParameterSlice *s, const char *name)
{
	double squares = 0, bound = p->squares ? INFINITY : p->tolerance
		* largest_of(want, s->whole_rows * s->whole_columns);
	for (size_t i = 0; i < s->rows * s->columns; i++) {
		size_t r = i / s->columns, c = i % s->columns;
		double off = got[i] - want[(s->row + r) * s->whole_columns + s->column
			+ c];
		squares += off * off;
		if (!(fabs(off) <= bound))
			die("%s: row %zu, column %zu is off by %g of %g", name, r, c, off,
				bound);
	}
	return squares;
}

/* gains are compared by all ranks and counted by the first */
static inline double compare_part(Model *m, const Parts *p, bool gradients)
{
	double squares = 0;
	const real *want = gradients ? p->gradients : p->weights;
	real *got = need(malloc(m->count * sizeof *got));
	size_t at = 0;
	read_all(m, gradients, got);
	for (int i = 0; i < shape_nparameters(&m->shape); i++) {
		const Parameter *about = &m->params[i].about;
		ParameterSlice s = group_slice(&m->whole, m->group, i);
		double off = compare_slice(p, got + at, want, &s, about->name);
		if (!about->gain || m->group->rank == 0)
			squares += off;
		at += about->count;
		want += s.whole_rows * s.whole_columns;
	}
	free(got);
	return squares;
}

static inline void same_on_all(Comm *c, double x, const char *what)
{
	if (comm_max(c, x) != x || comm_max(c, -x) != -x)
		die("rank %d: the %s differs between ranks: %.17g", comm_rank(c), what,
			x);
}

static inline void same_gains(Model *m, Comm *c)
{
	real gain[64];
	for (int i = 0; i < shape_nparameters(&m->shape); i++) {
		const Parameter *p = &m->params[i].about;
		assert_true(!p->gain || p->count <= 64);
		if (!p->gain)
			continue;
		array_read(m->device, gain, model_weight(m, i), p->count);
		for (size_t k = 0; k < p->count; k++)
			same_on_all(c, gain[k], p->name);
	}
}

// train a part on each rank
static inline void train_part(Device *d, Comm *group, Comm *copies,
	const Parts *p)
{
	// make the part, its optimizer and its data parallelism
	TensorGroup t;
	tensor_group(&t, d, group);
	t.group.keep_norms = p->keep_norms;
	Model *m = part_of(d, p, &t.group);
	Ddp *ddp = copies ? ddp_new(m, copies, &(DdpSettings){ DDP_BUCKETED, 0.001,
		FP32, p->exchange }) : NULL;
	Optimizer o = optimizer_of(m, p);
	if (ddp)
		ddp_bind(ddp, &o);
	Replay replay = { 0 };
	for (int step = 0; step < p->steps; step++) {
		// take a step, and compare its loss
		double loss = 0;
		int copy = copies ? comm_rank(copies) : 0;
		for (int i = 0; i < p->passes && !p->replayed; i++) {
			if (ddp)
				ddp_sync(ddp, i == p->passes - 1);
			loss += pass_of(m, p, step, copy, i, i > 0);
		}
		if (p->replayed)
			loss = step_of(m, &o, &replay, p, step, copy);
		same_on_all(group, loss, "loss");
		loss = copies ? comm_sum(copies, loss) : loss;
		if (!p->squares && !(fabs(loss - p->losses[step])
			<= p->tolerance * p->losses[step]))
			die("step %d: loss %.17g, not %.17g", step, loss, p->losses[step]);
		// compare the gradients of the first step
		if (step == 0 && ddp == NULL) {
			double squares = compare_part(m, p, true);
			if (p->squares)
				p->squares[comm_rank(group)] = squares;
		}
		if (!p->replayed)
			update_weights(m, &o);
	}
	// compare the weights, and free all
	compare_part(m, p, false);
	same_gains(m, group);
	replay_free(&replay, d);
	optimizer_free(&o);
	if (ddp)
		ddp_free(&ddp);
	model_free(&m);
}

// train a part on each rank
static inline void be_part(const Place *place)
{
	const Parts *p = place->context;
	CommSettings settings = { .transport = p->gpus ? "auto" : "ring",
		.delay_us = p->delay_us };
	Device *d = device_of(p, place->rank);
	Link *all = meet_all(place, d);
	Link *row = link_split(all, place->rank / p->ranks),
		*column = link_split(all, place->rank % p->ranks);
	Comm *group = comm_open(row, d, &settings),
		*copies = p->copies > 1 ? comm_open(column, d, &settings) : NULL;
	train_part(d, group, copies, p);
	if (copies)
		comm_close(&copies);
	else
		link_close(&column);
	comm_close(&group);
	link_close(&all);
	device_close(&d);
}

// run a job of parts
static inline void new_results(Parts *p)
{
	size_t nbytes = shape_count(&p->shape) * sizeof(real);
	p->losses = shared(p->steps * sizeof(double));
	p->gradients = shared(nbytes);
	p->weights = shared(nbytes);
}

static inline void free_results(Parts *p)
{
	size_t nbytes = shape_count(&p->shape) * sizeof(real);
	munmap(p->losses, p->steps * sizeof(double));
	munmap(p->gradients, nbytes);
	munmap(p->weights, nbytes);
}

static inline void be_whole(const Place *place)
{
	train_whole(place->context);
}

/* the group trains as one rank does */
static inline void compare_job(Parts *p)
{
	new_results(p);
	run_well(1, be_whole, p);
	run_well(p->ranks * p->copies, be_part, p);
	free_results(p);
}

#endif
