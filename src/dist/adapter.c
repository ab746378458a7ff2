#include "dist/adapter.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "dist/outside_arrays.h"
#include "dist/owners.h"
#include "dist/reducer.h"
#include "dist/ring.h"
#include "ops/ops.h"
#include "ops/outside_calls.h"

/* a reducer of the caller's */
typedef struct CallerReducer {
	Reducer *reducer;
	GradientPart *parts;
	size_t *counts;                  /* elements of the caller's array i */
	bool *given;                     /* was array i given in this step? */
	int n;
	bool done;                       /* sums are there */
	int place;
} CallerReducer;

/* where arrays lie, and what carries them */
enum { HOST, GPU, PLACES };
enum { ALIGNED = 16 / sizeof(float) };       /* elements */
static const int64_t MOST = INT64_MAX / 64;  /* elements of an array */

static struct {
	Meeting at;
	int limit_s, gpu;
	int place;                       /* that of the call */
	Device *devices[PLACES];
	Comm *comms[PLACES];             /* of the host, NULL: outside */
	Caller caller;                   /* while a GPU is the place */
	Device *device;                  /* of the place */
	Comm *comm;
	CallerReducer *sums;
	int n;
	struct Request *requests;
	int nrequests;
} job;

static void drop_requests(int place);

_Static_assert((int)DIST_OVERLAP == DDP_OVERLAP
	&& (int)DIST_BUCKETED == DDP_BUCKETED, "kinds have one order");
_Static_assert((int)DIST_FP32 == OUTSIDE_FP32
	&& (int)DIST_BF16 == OUTSIDE_BF16 && (int)DIST_FP16 == OUTSIDE_FP16,
	"formats have one order");

// change the place of arrays
static void move_to(int place)
{
	job.place = place;
	job.device = job.devices[place];
	job.comm = job.comms[place];
}

static void open_place(int place, int rank, int ranks, Device *device,
	const char *transport)
{
	job.devices[place] = device;
	job.comms[place] = comm_open(link_tcp(rank, ranks, &job.at, job.limit_s),
		device, &(CommSettings){ .transport = transport,
		.limit_s = job.limit_s });
	move_to(place);
}

static void leave_gpu(void)
{
	if (job.place == GPU)
		caller_leave(&job.caller);
	move_to(HOST);
}

int32_t dist_place(int32_t gpu, void *stream)
{
	if (job.comms[HOST] == NULL)
		return DIST_OUTSIDE;
	leave_gpu();
	if (gpu < 0)
		return DIST_OK;
	if (job.comms[GPU] && gpu != job.gpu)
		return DIST_NO_GPU;
	if (caller_enter(&job.caller, true, gpu) != CALLER_OK)
		return DIST_NO_GPU;
	if (!caller_share(&job.caller, stream)) {
		caller_leave(&job.caller);
		return DIST_NO_GPU;
	}
	job.gpu = gpu;
	if (job.comms[GPU] == NULL)
		open_place(GPU, comm_rank(job.comm), comm_ranks(job.comm),
			job.caller.device, "auto");
	move_to(GPU);
	return DIST_OK;
}

// enter and leave a job
int32_t dist_open(int32_t rank, int32_t ranks, const char *address,
	int32_t port, int32_t limit_s)
{
	if (job.comm)
		return DIST_INSIDE;
	job.at = (Meeting){ .port = port, .listener = -1 };
	if (rank < 0 || rank >= ranks || port < 1 || port > 65535 || limit_s < 1
		|| address == NULL || strlen(address) >= sizeof job.at.host)
		return DIST_BAD_JOB;
	strcpy(job.at.host, address);
	job.limit_s = limit_s;
	open_place(HOST, rank, ranks, device_open("cpu"), "ring");
	return DIST_OK;
}

static void close_place(int place)
{
	for (int i = 0; i < job.n; i++) {
		CallerReducer *s = &job.sums[i];
		if (s->place != place)
			continue;
		reducer_free(&s->reducer);
		free(s->parts);
		free(s->counts);
		free(s->given);
	}
	drop_requests(place);
	comm_close(&job.comms[place]);
}

int32_t dist_close(void)
{
	if (job.comms[HOST] == NULL)
		return DIST_OK;
	if (job.comms[GPU] && dist_place(job.gpu, NULL) == DIST_OK)
		close_place(GPU);
	leave_gpu();
	close_place(HOST);
	device_close(&job.devices[HOST]);
	// forget reducers and requests
	free(job.sums);
	free(job.requests);
	job.sums = NULL;
	job.requests = NULL;
	job.n = job.nrequests = 0;
	move_to(HOST);
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
	Device *d = job.device;
	size_t words = (nbytes + sizeof(float) - 1) / sizeof(float);
	Array copy = array_new(d, words, FP32, MEM_PARAMETER, "weights");
	ops_for(d)->fill(d, array_part(d, copy, words - 1), 0, 1);
	device_copy(d, COMPUTE, copy.at, x, nbytes);
	device_wait(d, COMM, device_event(d, COMPUTE));
	device_wait(d, COMPUTE, comm_broadcast(job.comm, copy, words, root, "weights",
		0));
	device_copy(d, COMPUTE, x, copy.at, nbytes);
	device_free(d, copy.at);
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
		if (counts[i] < 0 || counts[i] > MOST - (int64_t)extent)
			return DIST_BAD_COUNT;
	if (n < 1 || extent == 0)
		return DIST_BAD_COUNT;
	// make the reducer, and keep it
	GradientPart *parts = need(calloc(n, sizeof *parts));
	size_t *own = need(calloc(n, sizeof *own));
	extent = 0;
	for (int i = 0; i < n; extent += parts[i++].count) {
		own[i] = (size_t)counts[i];
		parts[i] = (GradientPart){ extent, (own[i] + ALIGNED - 1) / ALIGNED
			* ALIGNED, 1 };
	}
	job.sums = grow(job.sums, job.n, sizeof *job.sums);
	job.sums[job.n] = (CallerReducer){ reducer_new(job.device, job.comm,
		&(DdpSettings){ (DdpKind)kind, bucket_mb, FP32, false }, parts, n, extent,
		FP32), parts, own,
		need(calloc(n, sizeof(bool))), n, false, job.place };
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
	if (s->place != job.place)
		return DIST_ELSEWHERE;
	if (index < 0 || index >= s->n)
		return DIST_BAD_INDEX;
	if (count < 0 || (size_t)count != s->counts[index])
		return DIST_BAD_COUNT;
	if (type < DIST_FP32 || type > (s->place == GPU ? DIST_BF16 : DIST_FP16))
		return DIST_BAD_TYPE;
	return x == NULL && count > 0 ? DIST_NULL : DIST_OK;
}

// take a gradient, give its mean
static Array part_of(const CallerReducer *s, int index)
{
	return array_part(job.device, reducer_gradients(s->reducer),
		s->parts[index].offset);
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
	outside_read(job.device, part_of(s, index), x, (size_t)count, type);
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
	if (s->place != job.place)
		return DIST_ELSEWHERE;
	reducer_finish(s->reducer);
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
	outside_write(job.device, x, part_of(s, index), (size_t)count, type,
		comm_ranks(job.comm));
	return DIST_OK;
}

int32_t dist_reducer_means(int32_t reducer, int32_t n, const int32_t *indices,
	void *const *x, const int32_t *types)
{
	int32_t status = DIST_OK;
	if (job.comm == NULL || reducer < 0 || reducer >= job.n)
		return DIST_OUTSIDE;
	if (n > 0 && (indices == NULL || x == NULL || types == NULL))
		return DIST_NULL;
	const CallerReducer *s = &job.sums[reducer];
	for (int i = 0; i < n && status == DIST_OK; i++) {
		bool named = indices[i] >= 0 && indices[i] < s->n;
		status = dist_reducer_mean(reducer, indices[i], x[i],
			named ? (int64_t)s->counts[indices[i]] : 0, types[i]);
	}
	return status;
}

// start collectives on ranges
typedef struct Request {
	Array x;                         /* x.at NULL: the result was taken */
	bool theirs;                     /* x is the caller's memory */
	size_t count;
	int32_t type;
	bool gathers;
	int place;
	Event done;
} Request;

static void drop_request(Request *r)
{
	if (!r->theirs)
		device_free(job.device, r->x.at);
	r->x.at = NULL;
}

static void drop_requests(int place)
{
	for (int i = 0; i < job.nrequests; i++)
		if (job.requests[i].place == place)
			drop_request(&job.requests[i]);
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
	if (count < 1 || count > MOST)
		return DIST_BAD_COUNT;
	return type < DIST_FP32 || type > DIST_FP16 ? DIST_BAD_TYPE : DIST_OK;
}

// start a gather
/* keeps a request, under the number of one that was taken if there is one */
static int32_t new_request(Request r)
{
	int i = 0;
	while (i < job.nrequests && job.requests[i].x.at)
		i++;
	if (i == job.nrequests)
		job.requests = grow(job.requests, job.nrequests++,
			sizeof *job.requests);
	r.theirs = r.x.at != NULL;
	if (!r.theirs)
		r.x = array_new(job.device, r.count, r.x.type, MEM_TEMPORARY, "shards");
	r.place = job.place;
	job.requests[i] = r;
	return i;
}

static int32_t gather(int32_t *request, void *whole, const void *x,
	int64_t count, int32_t type)
{
	size_t begin, end;
	bool stays = whole && outside_alike(job.device, type);
	range_of((size_t)count, &begin, &end);
	*request = new_request((Request){
		.x = { stays ? whole : NULL, type == DIST_FP32 ? FP32 : BF16 },
		.count = (size_t)count, .type = type, .gathers = true });
	Request *r = &job.requests[*request];
	if (!stays)
		outside_read_bits(job.device, array_part(job.device, r->x, begin), x,
			end - begin, type);
	device_wait(job.device, COMM, device_event(job.device, COMPUTE));
	r->done = comm_all_gather(job.comm, r->x, r->count, "weights", *request);
	return DIST_OK;
}

int32_t dist_gather(int32_t *request, const void *x, int64_t count,
	int32_t type)
{
	size_t begin, end;
	int32_t status = array_argument_error(request, count, type);
	if (status != DIST_OK)
		return status;
	range_of((size_t)count, &begin, &end);
	return x == NULL && end > begin ? DIST_NULL
		: gather(request, NULL, x, count, type);
}

int32_t dist_gather_in_place(int32_t *request, void *whole, int64_t count,
	int32_t type)
{
	size_t begin, end, width = type == DIST_FP32 ? sizeof(float)
		: sizeof(uint16_t);
	int32_t status = array_argument_error(request, count, type);
	if (status != DIST_OK || whole == NULL)
		return status != DIST_OK ? status : DIST_NULL;
	range_of((size_t)count, &begin, &end);
	return gather(request, whole, (char *)whole + begin * width, count, type);
}

// start a reduction
int32_t dist_reduce_scatter(int32_t *request, const void *x, int64_t count,
	int32_t type)
{
	int32_t status = array_argument_error(request, count, type);
	if (status != DIST_OK)
		return status;
	if (job.place == GPU && type == DIST_FP16)
		return DIST_BAD_TYPE;
	if (x == NULL)
		return DIST_NULL;
	*request = new_request((Request){
		.x.type = type == DIST_BF16 ? BF16 : FP32, .count = (size_t)count,
		.type = DIST_FP32 });
	Request *r = &job.requests[*request];
	outside_read(job.device, r->x, x, r->count, type);
	device_wait(job.device, COMM, device_event(job.device, COMPUTE));
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
	if (r->place != job.place)
		return DIST_ELSEWHERE;
	range_of(r->count, &begin, &end);
	if (r->gathers)
		begin = 0, end = r->count;
	if (count < 0 || (size_t)count != end - begin)
		return DIST_BAD_COUNT;
	if (x == NULL && count > 0)
		return DIST_NULL;
	device_wait(job.device, COMPUTE, r->done);
	// convert the result to the caller's type
	Array part = array_part(job.device, r->x, begin);
	if (!r->gathers)
		outside_write(job.device, x, part, end - begin, DIST_FP32,
			comm_ranks(job.comm));
	else if (x != part.at)
		outside_write_bits(job.device, x, part, end - begin, r->type);
	drop_request(r);
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
		[DIST_NO_GPU] = "no GPU of this number, another than before, or its "
			"stream is being captured",
		[DIST_ELSEWHERE] = "the array lies elsewhere than the reducer or request",
	};
	return caller_text(texts, sizeof texts / sizeof *texts, status);
}
