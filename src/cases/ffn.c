#include "cases/ffn.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/random.h"
#include "base/stats.h"

// find the cost of a pass by formula
FfnCost ffn_cost(const Ffn *f, FfnPass pass)
{
	const double B = f->B, D = f->D, F = f->F, X = f->X, Y = f->Y,
		matrices = f->gated ? 3 : 2, weights = matrices * NBYTES * D * F / Y,
		output = NBYTES * B * D / X;
	/* gather W; gather W and scatter dW; all-reduce dW */
	const double trips = f->sharded ? (pass == BACKWARD ? 2 : 1)
		: pass == BACKWARD ? 2 : 0;
	return (FfnCost){
		.flops = (pass == BACKWARD ? 2 : 1) * 2 * matrices * B * D * F / (X * Y),
		.nbytes = { trips * (X - 1) / X * weights, 2 * (Y - 1) / Y * output },
	};
}

// lay out the arrays of a layer
typedef enum FfnMatrix { INPUT, W1, W2, W3, X1, X2, Z, OUTPUT, DOUTPUT, DZ, DX1,
	DX2,
	DINPUT, DW1, DW2, DW3, NAMES } FfnMatrix;

/* part[name][device]; W3 and DW3 are stored transposed, as (D, F) */
typedef struct FfnLayer {
	const Ffn *f;
	Cluster *c;
	ClusterArray *part[NAMES];
} FfnLayer;

// find the part of a device
static double activation(double x) { return x * fabs(x); }
static double slope(double x) { return 2 * fabs(x); }

static ClusterArray part_of(const Ffn *f, FfnMatrix name, size_t x, size_t y)
{
	size_t rows = chunk_start(f->B, f->X, x + 1) - chunk_start(f->B, f->X, x),
		F = chunk_start(f->F, f->Y, y + 1) - chunk_start(f->F, f->Y, y);
	switch (name) {
	case INPUT: case OUTPUT: case DOUTPUT: case DINPUT:
		return (ClusterArray){ NULL, rows, f->D };
	case X1: case X2: case Z: case DZ: case DX1: case DX2:
		return (ClusterArray){ NULL, rows, F };
	default:
		return (ClusterArray){ NULL, f->D, F };
	}
}

// allocate and free the arrays of a layer
static FfnLayer layer_new(const Ffn *f, bool data)
{
	FfnLayer l = { .f = f, .c = cluster_new(f->X, f->Y, NBYTES) };
	size_t devices = cluster_size(l.c);
	for (FfnMatrix name = 0; name < NAMES; name++) {
		l.part[name] = need(malloc(devices * sizeof *l.part[name]));
		for (size_t d = 0; d < devices; d++) {
			ClusterArray p = part_of(f, name, d % f->X, d / f->X);
			size_t n = p.rows * p.width;
			if (data) {
				p.at = need(malloc((n + 1) * sizeof *p.at));
				for (size_t i = 0; i < n; i++)
					p.at[i] = NAN;
			}
			l.part[name][d] = p;
		}
	}
	return l;
}

static void layer_free(FfnLayer *l)
{
	for (FfnMatrix name = 0; name < NAMES; name++) {
		for (size_t d = 0; d < cluster_size(l->c); d++)
			free(l->part[name][d].at);
		free(l->part[name]);
	}
	cluster_free(&l->c);
}

// run a layer forward on a mesh
static void gather_weights(FfnLayer *l)
{
	if (l->f->sharded)
		for (FfnMatrix w = W1; w <= W3; w++)
			if (w != W2 || l->f->gated)
				ring_all_gather(l->c, AXIS_X, l->part[w]);
}

static void forward(FfnLayer *l)
{
	Cluster *c = l->c;
	gather_weights(l);
	for (size_t d = 0; d < cluster_size(c); d++) {
		ClusterArray input = l->part[INPUT][d], x1 = l->part[X1][d],
			x2 = l->part[X2][d], z = l->part[Z][d];
		cluster_matmul(c, d, x1, 0, input, false, l->part[W1][d], false);
		if (l->f->gated)
			cluster_matmul(c, d, x2, 0, input, false, l->part[W2][d], false);
		for (size_t i = 0; z.at && i < z.rows * z.width; i++)
			z.at[i] = activation(x1.at[i]) * (l->f->gated ? x2.at[i] : 1);
		cluster_matmul(c, d, l->part[OUTPUT][d], 0, z, false, l->part[W3][d],
			true);
	}
	ring_all_reduce(c, AXIS_Y, l->part[OUTPUT]);
}

// run a layer backward on one device
static void backward_on(FfnLayer *l, size_t d)
{
	Cluster *c = l->c;
	ClusterArray input = l->part[INPUT][d], x1 = l->part[X1][d],
		x2 = l->part[X2][d],
		dy = l->part[DOUTPUT][d], dz = l->part[DZ][d], dx = l->part[DINPUT][d],
		dx1 = l->part[DX1][d], dx2 = l->part[DX2][d];
	cluster_matmul(c, d, dz, 0, dy, false, l->part[W3][d], false);
	for (size_t i = 0; dz.at && i < dz.rows * dz.width; i++) {
		dx2.at[i] = dz.at[i] * activation(x1.at[i]);
		dx1.at[i] = dz.at[i] * slope(x1.at[i]) * (l->f->gated ? x2.at[i] : 1);
	}
	cluster_matmul(c, d, dx, 0, dx1, false, l->part[W1][d], true);
	if (l->f->gated)
		cluster_matmul(c, d, dx, 1, dx2, false, l->part[W2][d], true);
	/* (dW3)^T = dy^T z */
	cluster_matmul(c, d, l->part[DW3][d], 0, dy, true, l->part[Z][d], false);
	if (l->f->gated)
		cluster_matmul(c, d, l->part[DW2][d], 0, input, true, dx2, false);
	cluster_matmul(c, d, l->part[DW1][d], 0, input, true, dx1, false);
}

static void backward(FfnLayer *l)
{
	gather_weights(l);
	for (size_t d = 0; d < cluster_size(l->c); d++)
		backward_on(l, d);
	ring_all_reduce(l->c, AXIS_Y, l->part[DINPUT]);
	for (FfnMatrix w = DW1; w <= DW3; w++)
		if (w != DW2 || l->f->gated)
			(l->f->sharded ? ring_reduce_scatter : ring_all_reduce)(l->c,
				AXIS_X, l->part[w]);
}

// count a schedule
static FfnCost counted_cost(Cluster *c)
{
	FfnCost cost = { cluster_flops(c),
		{ c->axis_nbytes[AXIS_X], c->axis_nbytes[AXIS_Y] } };
	cluster_reset(c);
	return cost;
}

void ffn_count(const Ffn *f, FfnCost cost[PASSES])
{
	FfnLayer l = layer_new(f, false);
	forward(&l);
	cost[FORWARD] = counted_cost(l.c);
	backward(&l);
	cost[BACKWARD] = counted_cost(l.c);
	layer_free(&l);
}

// fill what devices hold
/* element (row, column) of the whole array, -2 ... 2 */
static double matrix_element(FfnMatrix name, size_t row, size_t column)
{
	return (double)(random_bits(1, name, row << 20 | column) % 5) - 2;
}

// fill the parts of a device
/* what device d has of the whole array; of sharded weights, its rows alone */
static void fill(FfnLayer *l, FfnMatrix name)
{
	const Ffn *f = l->f;
	bool weight = name >= W1 && name <= W3;
	for (size_t d = 0; d < cluster_size(l->c); d++) {
		ClusterArray p = l->part[name][d];
		size_t x = d % f->X, y = d / f->X,
			row = weight ? 0 : chunk_start(f->B, f->X, x),
			column = weight ? chunk_start(f->F, f->Y, y) : 0;
		for (size_t i = 0; i < p.rows; i++)
			for (size_t j = 0; j < p.width; j++) {
				bool held = !weight || !f->sharded
					|| (i >= chunk_start(f->D, f->X, x)
						&& i < chunk_start(f->D, f->X, x + 1));
				p.at[i * p.width + j] = held
					? matrix_element(name, row + i, column + j) : NAN;
			}
	}
}

// compare with one device
/* ends the program unless each device's part of an array is that of `one` */
static void compare(const FfnLayer *l, const FfnLayer *one, FfnMatrix name)
{
	const Ffn *f = l->f;
	bool weight = name >= DW1;
	ClusterArray whole = one->part[name][0];
	for (size_t d = 0; d < cluster_size(l->c); d++) {
		ClusterArray p = l->part[name][d];
		size_t x = d % f->X, y = d / f->X, first = 0, end = p.rows,
			row = weight ? 0 : chunk_start(f->B, f->X, x),
			column = weight ? chunk_start(f->F, f->Y, y) : 0;
		if (weight && f->sharded) {
			first = chunk_start(f->D, f->X, x);
			end = chunk_start(f->D, f->X, x + 1);
		}
		for (size_t i = first; i < end; i++)
			for (size_t j = 0; j < p.width; j++) {
				double got = p.at[i * p.width + j],
					want = whole.at[(row + i) * whole.width + column + j];
				if (!(got == want))
					die("device (%zu, %zu): element (%zu, %zu) of array %d is "
						"%g, not %g", x, y, i, j, name, got, want);
			}
	}
}

// compare gradients with differences
static double loss(FfnLayer *one)
{
	ClusterArray y = one->part[OUTPUT][0], dy = one->part[DOUTPUT][0];
	double sum = 0;
	forward(one);
	for (size_t i = 0; i < y.rows * y.width; i++)
		sum += y.at[i] * dy.at[i];
	return sum;
}

// hold gradients against differences
static void check_derivatives(FfnLayer *one)
{
	static const FfnMatrix pairs[][2] = { { INPUT, DINPUT }, { W1, DW1 },
		{ W2, DW2 }, { W3, DW3 } };
	const double h = 0x1p-12;
	enum { TRIED = 12, SMALL = 10000 };
	if (one->f->B * one->f->D * one->f->F > SMALL)
		return;
	for (int p = 0; p < 4; p++) {
		ClusterArray a = one->part[pairs[p][0]][0], d = one->part[pairs[p][1]][0];
		size_t n = a.rows * a.width;
		double largest = 0;
		if (pairs[p][0] == W2 && !one->f->gated)
			continue;
		for (size_t i = 0; i < n; i++)
			largest = max_or_nan(largest, fabs(d.at[i]));
		// compare some elements with central differences
		for (int k = 0; k < TRIED; k++) {
			double *x = &a.at[k * (n - 1) / (TRIED - 1)], kept = *x,
				want = d.at[x - a.at];
			*x = kept + h;
			double up = loss(one);
			*x = kept - h;
			double slope = (up - loss(one)) / (2 * h);
			*x = kept;
			if (!(fabs(slope - want) <= 1e-2 * largest))
				die("array %d: the gradient %g is no derivative, %g", p, want,
					slope);
		}
	}
	loss(one);
	counted_cost(one->c);
}

// run with data
static void run(FfnLayer *l, FfnCost cost[PASSES])
{
	for (FfnMatrix name = INPUT; name <= W3; name++)
		fill(l, name);
	fill(l, DOUTPUT);
	forward(l);
	cost[FORWARD] = counted_cost(l->c);
	for (FfnMatrix name = W1; name <= W3; name++)
		fill(l, name);              /* what was gathered is dropped */
	backward(l);
	cost[BACKWARD] = counted_cost(l->c);
}

// run a layer on a mesh and on one device
void ffn_run(const Ffn *f, FfnCost cost[PASSES])
{
	const Ffn alone = { .B = f->B, .D = f->D, .F = f->F, .gated = f->gated,
		.X = 1, .Y = 1 };
	FfnLayer one = layer_new(&alone, true), l = layer_new(f, true);
	run(&one, cost);
	check_derivatives(&one);
	run(&l, cost);
	compare(&l, &one, OUTPUT);
	compare(&l, &one, DINPUT);
	for (FfnMatrix name = DW1; name <= DW3; name++)
		if (name != DW2 || f->gated)
			compare(&l, &one, name);
	layer_free(&one);
	layer_free(&l);
}
