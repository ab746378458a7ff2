#include "cases/cluster.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

// make a cluster, and find ranks on its rings
Cluster *cluster_new(size_t X, size_t Y, size_t element_nbytes)
{
	Cluster *c = need(calloc(1, sizeof *c));
	*c = (Cluster){ .length = { X, Y }, .element_nbytes = element_nbytes };
	c->flops = need(calloc(X * Y, sizeof *c->flops));
	return c;
}

void cluster_free(Cluster **c)
{
	free((*c)->flops);
	free(*c);
	*c = NULL;
}

// find a device's place on its rings
size_t cluster_size(const Cluster *c)
{
	return c->length[AXIS_X] * c->length[AXIS_Y];
}

size_t cluster_rank(const Cluster *c, Axis axis, size_t device)
{
	size_t X = c->length[AXIS_X];
	return axis == AXIS_X ? device % X : device / X;
}

static size_t next_on_ring(const Cluster *c, Axis axis, size_t device)
{
	size_t stride = axis == AXIS_X ? 1 : c->length[AXIS_X],
		rank = cluster_rank(c, axis, device);
	return device - rank * stride + (rank + 1) % c->length[axis] * stride;
}

// reset and read counts
void cluster_reset(Cluster *c)
{
	memset(c->flops, 0, cluster_size(c) * sizeof *c->flops);
	for (int axis = 0; axis < AXES; axis++)
		c->axis_nbytes[axis] = c->steps[axis] = 0;
}

size_t cluster_flops(const Cluster *c)
{
	size_t most = 0;
	for (size_t d = 0; d < cluster_size(c); d++)
		most = c->flops[d] > most ? c->flops[d] : most;
	return most;
}

// store or add what arrives
typedef void Receive(double *to, const double *from, size_t n);

static void store(double *to, const double *from, size_t n)
{
	memcpy(to, from, n * sizeof *to);
}

static void add(double *to, const double *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] += from[i];
}

size_t chunk_start(size_t rows, size_t N, size_t k)
{
	return rows * k / N;
}

/* every device sends the chunk `back` ranks before its own to the next */
static void ring_step(Cluster *c, Axis axis, ClusterArray *part, size_t back,
	Receive *receive)
{
	size_t N = c->length[axis], most = 0;
	for (size_t d = 0; d < cluster_size(c); d++) {
		const ClusterArray *p = &part[d], *next = &part[next_on_ring(c, axis, d)];
		size_t k = (cluster_rank(c, axis, d) + N - back) % N,
			first = chunk_start(p->rows, N, k) * p->width,
			n = chunk_start(p->rows, N, k + 1) * p->width - first,
			nbytes = n * c->element_nbytes;
		if (p->at)
			receive(next->at + first, p->at + first, n);
		most = nbytes > most ? nbytes : most;
	}
	c->axis_nbytes[axis] += most;
	c->steps[axis]++;
}

// gather and sum on rings
void ring_all_gather(Cluster *c, Axis axis, ClusterArray *part)
{
	for (size_t t = 1; t < c->length[axis]; t++)
		ring_step(c, axis, part, t - 1, store);
}

/* a device has added its part to all chunks that it sends but the first */
static void ring_sum(Cluster *c, Axis axis, ClusterArray *part)
{
	for (size_t t = 1; t < c->length[axis]; t++)
		ring_step(c, axis, part, t, add);
}

// sum everywhere on rings
/* nobody keeps a chunk, so arrays are cut between any two elements */
void ring_all_reduce(Cluster *c, Axis axis, ClusterArray *part)
{
	size_t devices = cluster_size(c);
	ClusterArray *flat = need(malloc(devices * sizeof *flat));
	for (size_t d = 0; d < devices; d++)
		flat[d] = (ClusterArray){ part[d].at, part[d].rows * part[d].width, 1 };
	ring_sum(c, axis, flat);
	ring_all_gather(c, axis, flat);
	free(flat);
}

// sum on rings and keep the own chunk
void ring_reduce_scatter(Cluster *c, Axis axis, ClusterArray *part)
{
	size_t N = c->length[axis];
	ring_sum(c, axis, part);
	for (size_t d = 0; d < cluster_size(c); d++) {
		ClusterArray p = part[d];
		size_t k = cluster_rank(c, axis, d),
			first = chunk_start(p.rows, N, k) * p.width,
			end = chunk_start(p.rows, N, k + 1) * p.width;
		for (size_t i = 0; p.at && i < p.rows * p.width; i++)
			if (i < first || i >= end)
				p.at[i] = NAN;
	}
}

// pass whole arrays round rings
void alternate_ring_all_reduce(Cluster *c, Axis axis, ClusterArray *part)
{
	size_t N = c->length[axis], devices = cluster_size(c);
	double **passing = need(calloc(2 * devices, sizeof *passing)),
		**arriving = passing + devices;
	for (size_t d = 0; d < devices && part[d].at; d++) {
		size_t n = part[d].rows * part[d].width;
		passing[d] = need(malloc((n + 1) * sizeof **passing));
		store(passing[d], part[d].at, n);
	}
	for (size_t t = 1; t < N; t++) {
		size_t most = 0;
		for (size_t d = 0; d < devices; d++) {
			size_t to = next_on_ring(c, axis, d),
				n = part[d].rows * part[d].width;
			arriving[to] = passing[d];
			if (part[d].at)
				add(part[to].at, passing[d], n);
			most = n > most ? n : most;
		}
		memcpy(passing, arriving, devices * sizeof *passing);
		c->axis_nbytes[axis] += most * c->element_nbytes;
		c->steps[axis]++;
	}
	for (size_t d = 0; d < devices; d++)
		free(passing[d]);
	free(passing);
}

// multiply on one device
void cluster_matmul(Cluster *c, size_t device, ClusterArray C, double beta,
	ClusterArray A,
	bool trans_a, ClusterArray B, bool trans_b)
{
	size_t m = C.rows, n = C.width, k = trans_a ? A.rows : A.width;
	assert(m == (trans_a ? A.width : A.rows));
	assert(n == (trans_b ? B.rows : B.width));
	assert(k == (trans_b ? B.width : B.rows));
	c->flops[device] += 2 * m * n * k;
	for (size_t i = 0; C.at && i < m; i++)
		for (size_t j = 0; j < n; j++) {
			double sum = beta ? C.at[i * n + j] : 0;
			for (size_t l = 0; l < k; l++)
				sum += A.at[trans_a ? l * m + i : i * k + l]
					* B.at[trans_b ? j * k + l : l * n + j];
			C.at[i * n + j] = sum;
		}
}
