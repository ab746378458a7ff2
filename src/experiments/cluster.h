/* cluster.h: devices that compute and send to one another in steps. What each
 * does is counted, nothing is timed. Arrays may be absent: then steps are
 * counted alone */
#ifndef EXPERIMENTS_CLUSTER_H
#define EXPERIMENTS_CLUSTER_H

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

/* what a device has of an array: (rows, width), row-major; NULL: no elements,
 * sizes only */
typedef struct Part {
	double *at;
	size_t rows, width;
} Part;

Cluster *cluster_new(size_t X, size_t Y, size_t element_nbytes);
void     cluster_free(Cluster **c);
size_t   cluster_size(const Cluster *c);
/* along an axis: 0 ... length - 1 */
size_t   cluster_rank(const Cluster *c, Axis axis, size_t device);
void     cluster_reset(Cluster *c);         /* all counts are 0 */
size_t   cluster_flops(const Cluster *c);   /* of the device that has most */

/* the scale of tables that are computed, on no particular machine */
#define CLUSTER_SCALE "computed"

/* the first row of chunk k of N; that of chunk N is `rows` */
size_t   chunk_start(size_t rows, size_t N, size_t k);

/* Collectives along an axis; part[d] is device d's, of one shape on each ring.
 * A device's own chunk is that of its rank on the ring */
/* own chunks in, whole arrays out */
void ring_all_gather(Cluster *c, Axis axis, Part *part);
/* whole arrays in, the own chunk of their sum out; the rest is NaN */
void ring_reduce_scatter(Cluster *c, Axis axis, Part *part);
/* whole arrays in, their sum out */
void ring_all_reduce(Cluster *c, Axis axis, Part *part);
/* the same by passing whole arrays round the ring */
void alternate_ring_all_reduce(Cluster *c, Axis axis, Part *part);

/* C = beta C + op(A) op(B) on one device, 2mnk FLOPs; beta is 0 or 1 */
void cluster_matmul(Cluster *c, size_t device, Part C, double beta, Part A,
	bool trans_a, Part B, bool trans_b);

#endif
