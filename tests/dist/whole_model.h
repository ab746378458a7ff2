/* whole_model.h: the model on one rank, with which parts are compared */
#ifndef TESTS_WHOLE_MODEL_H
#define TESTS_WHOLE_MODEL_H

#include "tests/dist/part_of_model.h"

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

#endif
