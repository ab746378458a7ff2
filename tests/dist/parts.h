/* parts.h: a model on one rank, and the same in parts on several */
#ifndef TESTS_PARTS_H
#define TESTS_PARTS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "tests/dist/whole_model.h"

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
