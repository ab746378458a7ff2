/* adapter.h: data parallelism and shards over TCP, for programs that link with
 * libsystems.so; see the chapter on many devices in writeup.pdf */
#ifndef DIST_ADAPTER_H
#define DIST_ADAPTER_H

#include <stdint.h>

// declare types, kinds and statuses
/* number formats of arrays; reducers of the host take all, those of a GPU the
 * first two */
typedef enum { DIST_FP32, DIST_BF16, DIST_FP16 } DistType;

/* when gradients are summed: NAIVE each by itself and FLAT all at once, both
 * after the backward pass; OVERLAP each as soon as it is there; BUCKETED
 * bucket by bucket */
typedef enum { DIST_NAIVE, DIST_FLAT, DIST_OVERLAP, DIST_BUCKETED } DistKind;

typedef enum {
	DIST_OK,
	DIST_BAD_JOB,           /* rank, ranks, address, port or limit */
	DIST_INSIDE,            /* the process is in a job already */
	DIST_OUTSIDE,           /* no job, or no such reducer or request */
	DIST_NULL,              /* a pointer to an array is NULL */
	DIST_BAD_KIND,          /* no such kind, or buckets that hold nothing */
	DIST_BAD_TYPE,
	DIST_BAD_INDEX,         /* no such array, or no such rank */
	DIST_BAD_COUNT,         /* negative, or not that of the array */
	DIST_TWICE,             /* the array was given in this step already */
	DIST_EARLY,             /* no sums yet: dist_reducer_wait comes first */
	DIST_NO_GPU,            /* no such GPU, another than before, or capturing */
	DIST_ELSEWHERE,         /* the reducer or request is of another place */
} DistStatus;

// declare jobs, broadcasts and reducers
/* All ranks make the same calls of these, with equal sizes. One call at a time,
 * from any thread. A rank that is lost, or takes longer than limit_s seconds,
 * ends the process */

/* enters a job. Rank 0 listens at this address and port, to which the others
 * come */
int32_t dist_open(int32_t rank, int32_t ranks, const char *address,
	int32_t port, int32_t limit_s);
/* leaves it, and frees all reducers and requests; does nothing outside of a
 * job */
int32_t dist_close(void);
/* The arrays of the calls that follow, up to the next of these, lie on GPU
 * number gpu, or with -1, as at first, in the memory of the host. Their work is
 * queued on the stream, and the calls do not wait for it. A reducer or request
 * stays where it was made. The first call with a GPU is made by all ranks, each
 * with a GPU, and opens NCCL, or a way over the host where ranks share a GPU.
 * Until the call with -1 the thread has this GPU for itself */
int32_t dist_place(int32_t gpu, void *stream);
/* all ranks get root's bytes */
int32_t dist_broadcast(void *x, int64_t nbytes, int32_t root);
/* makes a reducer for n arrays with counts[i] elements; sets *reducer, a number.
 * Sums are sent from the last array to the first. DIST_BUCKETED: in buckets of at
 * most bucket_mb 1e6 bytes, or of one array that is larger; for other kinds
 * bucket_mb only has to be > 0 */
int32_t dist_reducer_new(int32_t *reducer, const int64_t *counts, int32_t n,
	int32_t kind, double bucket_mb);
/* sets how many collectives a step has */
int32_t dist_reducer_buckets(int32_t reducer, int32_t *buckets);

/* A step: ranks may give arrays in any order, and each leave out others */

/* copies array `index`, whose sum may start */
int32_t dist_reducer_ready(int32_t reducer, int32_t index, const void *x,
	int64_t count, int32_t type);
/* returns when all sums are there; what was not given counts as zeros */
int32_t dist_reducer_wait(int32_t reducer);
/* x: becomes the sum of array `index` over the ranks, divided by their number */
int32_t dist_reducer_mean(int32_t reducer, int32_t index, void *x,
	int64_t count, int32_t type);
/* the same for n arrays, x[i] for array indices[i], which has its whole length */
int32_t dist_reducer_means(int32_t reducer, int32_t n, const int32_t *indices,
	void *const *x, const int32_t *types);

// declare how shards travel
/* sets the owners of n more arrays: the largest first, each to the rank with the
 * smallest load. loads: elements of each rank so far; the new ones are added */
int32_t dist_owners(int32_t *owners, const int64_t *counts, int32_t n,
	int64_t *loads);
/* sets the range that this rank keeps of an array: elements *begin ... *end
 * - 1 */
int32_t dist_range(int64_t count, int64_t *begin, int64_t *end);

/* These copy an array of `count` elements, start a collective, and set
 * *request. An array of fp16 is gathered bit by bit, and summed in fp32, which on
 * a GPU is DIST_BAD_TYPE */

/* x: the rank's range, which may be empty */
int32_t dist_gather(int32_t *request, const void *x, int64_t count,
	int32_t type);
/* the same in place, in the whole array, which has the rank's range where it
 * belongs: nobody may touch it before dist_take, which is given it as x, has
 * returned */
int32_t dist_gather_in_place(int32_t *request, void *whole, int64_t count,
	int32_t type);
/* x: the whole array */
int32_t dist_reduce_scatter(int32_t *request, const void *x, int64_t count,
	int32_t type);
/* waits for the collective; its number is then free. x: the whole array, of the
 * type that was gathered; or this rank's range of the mean over the ranks, in
 * fp32. count: elements of x */
int32_t dist_take(int32_t request, void *x, int64_t count);

/* one line of English */
const char *dist_status(int32_t status);

#endif
