/* cluster.h: devices that compute and send to one another in steps. Work and
 * bytes are counted, nothing is timed. Arrays may be absent: then only counts
 * are made */
#ifndef CASES_CLUSTER_H
#define CASES_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>

/* device (x, y) of a mesh of X times Y is number y X + x; the devices of equal
 * y form a ring along AXIS_X, those of equal x one along AXIS_Y. All rings of
 * an axis step together */
typedef enum Axis { AXIS_X, AXIS_Y, AXES } Axis;

typedef struct Cluster {
	size_t length[AXES];            /* X, Y */
	size_t element_nbytes;          /* of an element that travels */
	size_t *flops;                  /* of each device */
	/* in each step the most bytes that any device sends, summed over steps:
	 * divided by the egress bandwidth, the time of the axis' collectives */
	size_t axis_nbytes[AXES];
	size_t steps[AXES];
} Cluster;

/* a device's part of an array: (rows, width), row-major; NULL: sizes only */
typedef struct ClusterArray {
	double *at;
	size_t rows, width;
} ClusterArray;

Cluster *cluster_new(size_t X, size_t Y, size_t element_nbytes);
void     cluster_free(Cluster **c);
size_t   cluster_size(const Cluster *c);    /* devices */
/* the device's position on its ring along an axis: 0 ... length - 1 */
size_t   cluster_rank(const Cluster *c, Axis axis, size_t device);
void     cluster_reset(Cluster *c);         /* sets all counts to 0 */
size_t   cluster_flops(const Cluster *c);   /* FLOPs of the busiest device */

/* the scale of tables that are computed, on no particular machine */
#define CLUSTER_SCALE "computed"

/* the first row of chunk k of N; that of chunk N is `rows` */
size_t   chunk_start(size_t rows, size_t N, size_t k);

/* Collectives along an axis; part[d] is device d's, of one shape on each ring.
 * A device's own chunk is that of its rank on the ring */
/* part[d]: the own chunk is set; then the whole array is */
void ring_all_gather(Cluster *c, Axis axis, ClusterArray *part);
/* part[d]: the whole array is set; then the own chunk holds the sum, the rest
 * NaN */
void ring_reduce_scatter(Cluster *c, Axis axis, ClusterArray *part);
/* part[d]: the whole array is set; then it holds the sum */
void ring_all_reduce(Cluster *c, Axis axis, ClusterArray *part);
/* an all-reduce that passes whole arrays round the ring */
void alternate_ring_all_reduce(Cluster *c, Axis axis, ClusterArray *part);

/* C = beta C + op(A) op(B) on one device, 2mnk FLOPs; beta is 0 or 1 */
void cluster_matmul(Cluster *c, size_t device, ClusterArray C, double beta,
	ClusterArray A,
	bool trans_a, ClusterArray B, bool trans_b);

#endif
