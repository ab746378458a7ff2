#include "dist/adapter.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "dist/reducer.h"

typedef struct Sums {
	Reducer *reducer;
	Part *parts;
	bool *given;                     /* in this step */
	int n;
	bool done;
} Sums;

static struct {
	Device *device;
	Comm *comm;                      /* NULL: outside */
	Sums *sums;
	int n;
} job;

_Static_assert((int)DIST_OVERLAP == DDP_OVERLAP
	&& (int)DIST_BUCKETED == DDP_BUCKETED, "kinds have one order");

int32_t dist_open(int32_t rank, int32_t ranks, const char *address,
	int32_t port, int32_t limit_s)
{
	Meeting at = { .port = port, .listener = -1 };
	if (job.comm)
		return DIST_INSIDE;
	if (rank < 0 || rank >= ranks || port < 1 || port > 65535 || limit_s < 1
		|| address == NULL || strlen(address) >= sizeof at.address)
		return DIST_BAD_JOB;
	strcpy(at.address, address);
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
	comm_close(&job.comm);
	device_close(&job.device);
	return DIST_OK;
}
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
int32_t dist_reducer_new(int32_t *reducer, const int64_t *counts, int32_t n,
	int32_t kind, double bucket_mb)
{
	if (job.comm == NULL)
		return DIST_OUTSIDE;
	if (reducer == NULL || counts == NULL)
		return DIST_NULL;
	if (kind < DIST_NAIVE || kind > DIST_BUCKETED || !(bucket_mb > 0))
		return DIST_BAD_KIND;
	size_t extent = 0;
	for (int i = 0; i < n; extent += counts[i++])
		if (counts[i] < 0)
			return DIST_BAD_COUNT;
	if (n < 1 || extent == 0)
		return DIST_BAD_COUNT;
	Part *parts = need(calloc(n, sizeof *parts));
	for (int i = 0; i < n; i++)
		parts[i] = (Part){ i ? parts[i - 1].offset + parts[i - 1].count : 0,
			counts[i], 1 };
	job.sums = need(realloc(job.sums, (job.n + 1) * sizeof *job.sums));
	job.sums[job.n] = (Sums){ reducer_new(job.device, job.comm, &(DdpSettings){
		(DdpKind)kind, bucket_mb, FP32, false }, parts, n, extent, FP32), parts,
		need(calloc(n, sizeof(bool))), n, false };
	*reducer = job.n++;
	return DIST_OK;
}

int32_t dist_reducer_buckets(int32_t reducer, int32_t *buckets)
{
	if (job.comm == NULL || reducer < 0 || reducer >= job.n)
		return DIST_OUTSIDE;
	if (buckets == NULL)
		return DIST_NULL;
	*buckets = reducer_buckets(job.sums[reducer].reducer);
	return DIST_OK;
}
static int32_t refusal(int32_t reducer, int32_t index, const void *x,
	int64_t count, int32_t type)
{
	if (job.comm == NULL || reducer < 0 || reducer >= job.n)
		return DIST_OUTSIDE;
	const Sums *s = &job.sums[reducer];
	if (index < 0 || index >= s->n)
		return DIST_BAD_INDEX;
	if (count < 0 || (size_t)count != s->parts[index].count)
		return DIST_BAD_COUNT;
	if (type != DIST_FP32 && type != DIST_BF16)
		return DIST_BAD_TYPE;
	return x == NULL && count > 0 ? DIST_NULL : DIST_OK;
}
/* where the array begins, in the memory of the host */
static real *part_of(const Sums *s, int index)
{
	return (real *)reducer_gradients(s->reducer).at + s->parts[index].offset;
}

int32_t dist_reducer_ready(int32_t reducer, int32_t index, const void *x,
	int64_t count, int32_t type)
{
	int32_t status = refusal(reducer, index, x, count, type);
	if (status != DIST_OK)
		return status;
	Sums *s = &job.sums[reducer];
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
	Sums *s = &job.sums[reducer];
	reducer_finish(s->reducer);
	device_now_ms(job.device);       /* waits */
	memset(s->given, 0, s->n * sizeof *s->given);
	s->done = true;
	return DIST_OK;
}

int32_t dist_reducer_mean(int32_t reducer, int32_t index, void *x,
	int64_t count, int32_t type)
{
	int32_t status = refusal(reducer, index, x, count, type);
	if (status != DIST_OK)
		return status;
	Sums *s = &job.sums[reducer];
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
const char *dist_status(int32_t status)
{
	static const char *const texts[] = {
		[DIST_OK] = "done",
		[DIST_BAD_JOB] = "there is no such job: ranks are 0 to ranks - 1, ports "
			"1 to 65535, limits 1 second or more",
		[DIST_INSIDE] = "this process is in a job already",
		[DIST_OUTSIDE] = "this process is in no job, or has no such reducer",
		[DIST_NULL] = "an array is missing",
		[DIST_BAD_KIND] = "there is no such kind of reducer, or its buckets "
			"hold nothing",
		[DIST_BAD_TYPE] = "this number format is not supported",
		[DIST_BAD_INDEX] = "there is no such array or rank",
		[DIST_BAD_COUNT] = "this is not the array's number of elements",
		[DIST_TWICE] = "the array was given in this step already",
		[DIST_EARLY] = "the sums are not there yet",
	};
	return status >= 0 && status < (int32_t)(sizeof texts / sizeof *texts)
		? texts[status] : "no such status";
}
