#include "dist/adapter.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "dist/owners.h"
#include "dist/reducer.h"
#include "dist/ring.h"
#include "ops/outside_calls.h"

/* a reducer of the caller's */
typedef struct CallerReducer {
	Reducer *reducer;
	GradientPart *parts;
	bool *given;                     /* was array i given in this step? */
	int n;
	bool done;                       /* sums are there */
} CallerReducer;

static struct {
	Device *device;
	Comm *comm;                      /* NULL: outside */
	CallerReducer *sums;
	int n;
	struct Request *requests;
	int nrequests;
} job;

static void drop_requests(void);

_Static_assert((int)DIST_OVERLAP == DDP_OVERLAP
	&& (int)DIST_BUCKETED == DDP_BUCKETED, "kinds have one order");

// enter and leave a job
int32_t dist_open(int32_t rank, int32_t ranks, const char *address,
	int32_t port, int32_t limit_s)
{
	Meeting at = { .port = port, .listener = -1 };
	if (job.comm)
		return DIST_INSIDE;
	if (rank < 0 || rank >= ranks || port < 1 || port > 65535 || limit_s < 1
		|| address == NULL || strlen(address) >= sizeof at.host)
		return DIST_BAD_JOB;
	strcpy(at.host, address);
	job.device = device_open("cpu");
	job.comm = comm_open(link_tcp(rank, ranks, &at, limit_s), job.device,
		&(CommSettings){ .transport = "ring", .limit_s = limit_s });
	return DIST_OK;
}

int32_t dist_close(void)
{
	if (job.comm == NULL)
		return DIST_OK;
	for (int i = 0; i < job.n; i++) {
		reducer_free(&job.sums[i].reducer);
		free(job.sums[i].parts);
		free(job.sums[i].given);
	}
	free(job.sums);
	job.sums = NULL;
	job.n = 0;
	drop_requests();
	comm_close(&job.comm);
	device_close(&job.device);
	return DIST_OK;
}

// copy bytes from the root
int32_t dist_broadcast(void *x, int64_t nbytes, int32_t root)
{
	if (job.comm == NULL)
		return DIST_OUTSIDE;
	if (nbytes < 0)
		return DIST_BAD_COUNT;
	if (root < 0 || root >= comm_ranks(job.comm))
		return DIST_BAD_INDEX;
	if (nbytes == 0 || x == NULL)
		return nbytes == 0 ? DIST_OK : DIST_NULL;
	// broadcast whole words, and copy back
	size_t words = (nbytes + sizeof(real) - 1) / sizeof(real);
	Array copy = array_new(job.device, words, FP32, MEM_PARAMETER, "weights");
	memset(copy.at, 0, words * sizeof(real));
	memcpy(copy.at, x, nbytes);
	comm_broadcast(job.comm, copy, words, root, "weights", 0);
	device_now_ms(job.device);       /* waits */
	memcpy(x, copy.at, nbytes);
	device_free(job.device, copy.at);
	return DIST_OK;
}

// make a reducer for a caller
int32_t dist_reducer_new(int32_t *reducer, const int64_t *counts, int32_t n,
	int32_t kind, double bucket_mb)
{
	if (job.comm == NULL)
		return DIST_OUTSIDE;
	if (reducer == NULL || counts == NULL)
		return DIST_NULL;
	if (kind < DIST_NAIVE || kind > DIST_BUCKETED || !(bucket_mb > 0))
		return DIST_BAD_KIND;
	// refuse counts that are no array's
	size_t extent = 0;
	for (int i = 0; i < n; extent += counts[i++])
		if (counts[i] < 0)
			return DIST_BAD_COUNT;
	if (n < 1 || extent == 0)
		return DIST_BAD_COUNT;
	// make the reducer, and keep it
	GradientPart *parts = need(calloc(n, sizeof *parts));
	for (int i = 0; i < n; i++)
		parts[i] = (GradientPart){
			i ? parts[i - 1].offset + parts[i - 1].count : 0, counts[i], 1 };
	job.sums = grow(job.sums, job.n, sizeof *job.sums);
	job.sums[job.n] = (CallerReducer){ reducer_new(job.device, job.comm,
		&(DdpSettings){ (DdpKind)kind, bucket_mb, FP32, false }, parts, n, extent,
		FP32), parts,
		need(calloc(n, sizeof(bool))), n, false };
	*reducer = job.n++;
	return DIST_OK;
}

// make a reducer for a caller
int32_t dist_reducer_buckets(int32_t reducer, int32_t *buckets)
{
	if (job.comm == NULL || reducer < 0 || reducer >= job.n)
		return DIST_OUTSIDE;
	if (buckets == NULL)
		return DIST_NULL;
	*buckets = reducer_buckets(job.sums[reducer].reducer);
	return DIST_OK;
}

// check what a caller gives
static int32_t argument_error(int32_t reducer, int32_t index, const void *x,
	int64_t count, int32_t type)
{
	if (job.comm == NULL || reducer < 0 || reducer >= job.n)
		return DIST_OUTSIDE;
	const CallerReducer *s = &job.sums[reducer];
	if (index < 0 || index >= s->n)
		return DIST_BAD_INDEX;
	if (count < 0 || (size_t)count != s->parts[index].count)
		return DIST_BAD_COUNT;
	if (type != DIST_FP32 && type != DIST_BF16)
		return DIST_BAD_TYPE;
	return x == NULL && count > 0 ? DIST_NULL : DIST_OK;
}

// take a gradient, give its mean
/* where the array begins, in the memory of the host */
static real *part_of(const CallerReducer *s, int index)
{
	return (real *)reducer_gradients(s->reducer).at + s->parts[index].offset;
}

int32_t dist_reducer_ready(int32_t reducer, int32_t index, const void *x,
	int64_t count, int32_t type)
{
	int32_t status = argument_error(reducer, index, x, count, type);
	if (status != DIST_OK)
		return status;
	CallerReducer *s = &job.sums[reducer];
	if (s->given[index])
		return DIST_TWICE;
	real *to = part_of(s, index);
	for (int64_t i = 0; i < count; i++)
		to[i] = type == DIST_FP32 ? ((const float *)x)[i]
			: bf16_to_float(((const uint16_t *)x)[i]);
	s->given[index] = true;
	s->done = false;
	if (count > 0)
		reducer_ready(s->reducer, index, 1, device_event(job.device, COMPUTE));
	return DIST_OK;
}

int32_t dist_reducer_wait(int32_t reducer)
{
	if (job.comm == NULL || reducer < 0 || reducer >= job.n)
		return DIST_OUTSIDE;
	CallerReducer *s = &job.sums[reducer];
	reducer_finish(s->reducer);
	device_now_ms(job.device);       /* waits */
	memset(s->given, 0, s->n * sizeof *s->given);
	s->done = true;
	return DIST_OK;
}

int32_t dist_reducer_mean(int32_t reducer, int32_t index, void *x,
	int64_t count, int32_t type)
{
	int32_t status = argument_error(reducer, index, x, count, type);
	if (status != DIST_OK)
		return status;
	CallerReducer *s = &job.sums[reducer];
	if (!s->done)
		return DIST_EARLY;
	const real *sum = part_of(s, index), ranks = comm_ranks(job.comm);
	for (int64_t i = 0; i < count; i++)
		if (type == DIST_FP32)
			((float *)x)[i] = (float)(sum[i] / ranks);
		else
			((uint16_t *)x)[i] = bf16_from_float((float)(sum[i] / ranks));
	return DIST_OK;
}

// start collectives on ranges
typedef struct Request {
	Array x;                         /* x.at NULL: the result was taken */
	size_t count;
	int32_t type;
	bool gathers;
	Event done;
} Request;

static void drop_requests(void)
{
	for (int i = 0; i < job.nrequests; i++)
		device_free(job.device, job.requests[i].x.at);
	free(job.requests);
	job.requests = NULL;
	job.nrequests = 0;
}

static void range_of(size_t count, size_t *begin, size_t *end)
{
	int rank = comm_rank(job.comm), ranks = comm_ranks(job.comm);
	*begin = shard_begin(count, rank, ranks);
	*end = shard_begin(count, rank + 1, ranks);
}

static int32_t array_argument_error(const int32_t *request, int64_t count,
	int32_t type)
{
	if (job.comm == NULL)
		return DIST_OUTSIDE;
	if (request == NULL)
		return DIST_NULL;
	if (count < 1)
		return DIST_BAD_COUNT;
	return type < DIST_FP32 || type > DIST_FP16 ? DIST_BAD_TYPE : DIST_OK;
}

// start a gather
static real value_of(const void *x, size_t i, int32_t type)
{
	if (type == DIST_FP32)
		return ((const float *)x)[i];
	uint16_t bits = ((const uint16_t *)x)[i];
	return type == DIST_BF16 ? bf16_to_float(bits) : fp16_to_float(bits);
}

/* keeps a request, under the number of one that was taken if there is one */
static int32_t new_request(Request r)
{
	int i = 0;
	while (i < job.nrequests && job.requests[i].x.at)
		i++;
	if (i == job.nrequests)
		job.requests = grow(job.requests, job.nrequests++,
			sizeof *job.requests);
	r.x = array_new(job.device, r.count, r.x.type, MEM_TEMPORARY, "shards");
	job.requests[i] = r;
	return i;
}

int32_t dist_gather(int32_t *request, const void *x, int64_t count,
	int32_t type)
{
	size_t begin, end;
	int32_t status = array_argument_error(request, count, type);
	if (status != DIST_OK)
		return status;
	range_of((size_t)count, &begin, &end);
	if (x == NULL && end > begin)
		return DIST_NULL;
	*request = new_request((Request){
		.x.type = type == DIST_FP32 ? FP32 : BF16, .count = (size_t)count,
		.type = type, .gathers = true });
	Request *r = &job.requests[*request];
	for (size_t i = begin; i < end; i++)
		((real *)r->x.at)[i] = value_of(x, i - begin,
			type == DIST_FP32 ? DIST_FP32 : DIST_BF16);
	r->done = comm_all_gather(job.comm, r->x, r->count, "weights", *request);
	return DIST_OK;
}

// start a reduction
int32_t dist_reduce_scatter(int32_t *request, const void *x, int64_t count,
	int32_t type)
{
	int32_t status = array_argument_error(request, count, type);
	if (status != DIST_OK)
		return status;
	if (x == NULL)
		return DIST_NULL;
	*request = new_request((Request){
		.x.type = type == DIST_BF16 ? BF16 : FP32, .count = (size_t)count,
		.type = DIST_FP32 });
	Request *r = &job.requests[*request];
	for (size_t i = 0; i < r->count; i++)
		((real *)r->x.at)[i] = value_of(x, i, type);
	r->done = comm_reduce_scatter(job.comm, r->x, r->count, "gradients",
		*request);
	return DIST_OK;
}

// take what a collective left
int32_t dist_take(int32_t request, void *x, int64_t count)
{
	size_t begin = 0, end;
	if (job.comm == NULL || request < 0 || request >= job.nrequests
		|| job.requests[request].x.at == NULL)
		return DIST_OUTSIDE;
	Request *r = &job.requests[request];
	range_of(r->count, &begin, &end);
	if (r->gathers)
		begin = 0, end = r->count;
	if (count < 0 || (size_t)count != end - begin)
		return DIST_BAD_COUNT;
	if (x == NULL && count > 0)
		return DIST_NULL;
	real *all = need(malloc(r->count * sizeof *all)),
		ranks = comm_ranks(job.comm);
	device_wait(job.device, COMPUTE, r->done);
	array_read(job.device, all, r->x, r->count);
	// convert the result to the caller's type
	for (size_t i = begin; i < end; i++)
		if (!r->gathers)
			((float *)x)[i - begin] = (float)(all[i] / ranks);
		else if (r->type == DIST_FP32)
			((float *)x)[i] = (float)all[i];
		else
			((uint16_t *)x)[i] = bf16_from_float((float)all[i]);
	free(all);
	device_free(job.device, r->x.at);
	r->x.at = NULL;
	return DIST_OK;
}

// take what a collective left
int32_t dist_range(int64_t count, int64_t *begin, int64_t *end)
{
	size_t from, to;
	if (job.comm == NULL)
		return DIST_OUTSIDE;
	if (begin == NULL || end == NULL)
		return DIST_NULL;
	if (count < 0)
		return DIST_BAD_COUNT;
	range_of((size_t)count, &from, &to);
	*begin = (int64_t)from;
	*end = (int64_t)to;
	return DIST_OK;
}

// deal arrays out for a caller
int32_t dist_owners(int32_t *owners, const int64_t *counts, int32_t n,
	int64_t *loads)
{
	if (job.comm == NULL)
		return DIST_OUTSIDE;
	if (owners == NULL || counts == NULL || loads == NULL)
		return DIST_NULL;
	int ranks = comm_ranks(job.comm);
	// refuse counts and loads that are negative
	for (int i = 0; i < n; i++)
		if (counts[i] < 0)
			return DIST_BAD_COUNT;
	for (int r = 0; r < ranks; r++)
		if (loads[r] < 0)
			return DIST_BAD_COUNT;
	if (n < 1)
		return DIST_BAD_COUNT;
	// share the arrays out by size
	size_t *sizes = need(malloc((n + ranks) * sizeof *sizes)),
		*sums = sizes + n;
	for (int i = 0; i < n; i++)
		sizes[i] = (size_t)counts[i];
	for (int r = 0; r < ranks; r++)
		sums[r] = (size_t)loads[r];
	share_out(sizes, n, sums, ranks, owners);
	for (int r = 0; r < ranks; r++)
		loads[r] = (int64_t)sums[r];
	free(sizes);
	return DIST_OK;
}

// say what a status means
const char *dist_status(int32_t status)
{
	static const char *const texts[] = {
		[DIST_OK] = "done",
		[DIST_BAD_JOB] = "there is no such job: ranks are 0 to ranks - 1, ports "
			"1 to 65535, limits 1 second or more",
		[DIST_INSIDE] = "this process is in a job already",
		[DIST_OUTSIDE] = "this process is in no job, or has no such reducer or "
			"request",
		[DIST_NULL] = "an array is missing",
		[DIST_BAD_KIND] = "there is no such kind of reducer, or its buckets "
			"hold nothing",
		[DIST_BAD_TYPE] = "this number format is not supported",
		[DIST_BAD_INDEX] = "there is no such array or rank",
		[DIST_BAD_COUNT] = "this is not the array's number of elements",
		[DIST_TWICE] = "the array was given in this step already",
		[DIST_EARLY] = "the sums are not there yet",
	};
	return caller_text(texts, sizeof texts / sizeof *texts, status);
}
