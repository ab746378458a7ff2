#include "dist/reducer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buckets.h"
#include "base/error.h"
#include "ops/ops.h"

const char *const ddp_names[NDDP] = { CHOICE_NAMES(DDP_KINDS_OF) };

// declare a bucket
typedef struct GradientBucket {
	int first;                       /* lowest of its parts */
	size_t offset, n;
} GradientBucket;

struct Reducer {
	Device *device;
	const Ops *ops;
	Comm *comm;
	DdpSettings settings;
	GradientPart *parts;
	int nparts;
	size_t extent;
	/* the same memory, unless gradients are cast for the wire */
	Array gradients, wire;
	/* of exchanges: the ranks' gradients, the wire among them; n = 0: none */
	Gradients sums;
	GradientBucket *buckets;         /* in the order in which they are sent */
	int nbuckets;
	// declare how far a step has come
	/* of this step: announcements of each part; all parts from `next` on are
	 * complete; buckets sent, and the event after the last one */
	int *announced, next, sent;
	Event last;
	bool compared;                   /* orders of collectives, once */
};

// cut the gradients into buckets
static size_t most_elements(const Reducer *r)
{
	const DdpSettings *s = &r->settings;
	double n = s->bucket_mb * 1e6 / type_size(s->wire);
	if (s->kind == DDP_NAIVE || s->kind == DDP_OVERLAP)
		return 0;
	return s->kind == DDP_BUCKETED && n < r->extent ? (size_t)n : r->extent;
}

static void cut_buckets(Reducer *r)
{
	BucketCutter cutter = { .most = most_elements(r) };
	for (int i = r->nparts - 1; i >= 0; i--) {
		const GradientPart *p = &r->parts[i];
		if (p->count == 0)
			continue;
		r->nbuckets += bucket_begins(&cutter, p->offset, p->count);
		r->buckets[r->nbuckets - 1] = (GradientBucket){ i, p->offset,
			(size_t)cutter.end - p->offset };
	}
}

// make and free a reducer
Reducer *reducer_new(Device *d, Comm *comm, const DdpSettings *settings,
	const GradientPart *parts, int nparts, size_t extent, Type type)
{
	assert(settings->wire == FP32 || settings->wire == BF16);
	Reducer *r = need(calloc(1, sizeof *r));
	*r = (Reducer){ .device = d, .ops = ops_for(d), .comm = comm,
		.settings = *settings, .nparts = nparts, .next = nparts,
		.extent = extent };
	// copy the parts, and make room for buckets
	r->parts = need(malloc(nparts * sizeof *parts));
	memcpy(r->parts, parts, nparts * sizeof *parts);
	r->buckets = need(malloc(nparts * sizeof *r->buckets));
	r->announced = need(calloc(nparts, sizeof *r->announced));
	// allocate what travels
	if (settings->exchange && !comm_exchanges(comm))
		die("%d ranks on %s cannot exchange gradients", comm_ranks(comm),
			comm_transport(comm));
	if (settings->exchange)
		r->sums = comm_parts(comm, extent, settings->wire, MEM_GRADIENT,
			"gradients of all ranks");
	r->wire = settings->exchange ? r->sums.at[comm_rank(comm)]
		: comm_array(comm, extent, settings->wire, MEM_GRADIENT,
			"gradients on the wire");
	r->gradients = r->wire;
	if (type != settings->wire)
		r->gradients = array_new(d, extent, type, MEM_GRADIENT, "gradients");
	r->ops->fill(d, r->gradients, 0, extent);
	cut_buckets(r);
	return r;
}

// make and free a reducer
void reducer_free(Reducer **reducer)
{
	Reducer *r = *reducer;
	if (r->gradients.at != r->wire.at)
		device_free(r->device, r->gradients.at);
	free(r->parts);
	free(r->buckets);
	free(r->announced);
	free(r);
	*reducer = NULL;
}

Array reducer_gradients(const Reducer *r)
{
	return r->gradients;
}

Gradients reducer_sums(const Reducer *r)
{
	return r->sums;
}

int reducer_buckets(const Reducer *r)
{
	return r->nbuckets;
}

// ask whether gradients are cast for the wire
static bool casts(const Reducer *r)
{
	return r->gradients.at != r->wire.at;
}

// send a bucket
static void send_bucket(Reducer *r, Event when)
{
	static const char *const names[NDDP] = { [DDP_NAIVE] = "gradient",
		[DDP_FLAT] = "gradients", [DDP_OVERLAP] = "gradient",
		[DDP_BUCKETED] = "bucket" };
	const GradientBucket *b = &r->buckets[r->sent];
	Array x = array_part(r->device, r->wire, b->offset);
	// cast the bucket for the wire
	if (casts(r)) {
		r->ops->cast(r->device, x, array_part(r->device, r->gradients,
			b->offset), b->n);
		when = device_event(r->device, COMPUTE);
	}
	device_wait(r->device, COMM, when);
	r->last = (r->settings.exchange ? comm_exchange : comm_all_reduce)(r->comm,
		x, b->n, names[r->settings.kind],
		r->settings.kind == DDP_BUCKETED ? r->sent : b->first);
	r->sent++;
}

// note which gradients are there, and send full buckets
static bool all_uses_announced(const Reducer *r, int i)
{
	return r->parts[i].count == 0 || r->announced[i] == r->parts[i].uses;
}

static void send_full(Reducer *r, Event when)
{
	while (r->next > 0 && all_uses_announced(r, r->next - 1))
		r->next--;
	while (r->sent < r->nbuckets && r->buckets[r->sent].first >= r->next)
		send_bucket(r, when);
}

// count announcements, and send what is full
void reducer_ready(Reducer *r, int first, int count, Event when)
{
	assert(first >= 0 && count >= 0 && first + count <= r->nparts);
	for (int i = first; i < first + count; i++)
		if (r->parts[i].count == 0 || ++r->announced[i] > r->parts[i].uses)
			die("the gradient of parameter %d was announced %d times in a step, "
				"and the parameter has %d uses", i, r->announced[i],
				r->parts[i].count ? r->parts[i].uses : 0);
	if (r->settings.kind == DDP_OVERLAP || r->settings.kind == DDP_BUCKETED)
		send_full(r, when);
}

// finish the sums of a step
void reducer_finish(Reducer *r)
{
	Device *d = r->device;
	// fill in zeros for what was not announced
	for (int i = 0; i < r->nparts; i++)
		if (r->announced[i] == 0 && r->parts[i].count > 0)
			r->ops->fill(d, array_part(d, r->gradients, r->parts[i].offset), 0,
				r->parts[i].count);
	while (r->sent < r->nbuckets)
		send_bucket(r, device_event(d, COMPUTE));
	if (!r->compared)
		comm_check_order(r->comm);
	r->compared = true;
	if (r->nbuckets > 0)
		device_wait(d, COMPUTE, r->last);
	// cast the sums back to the gradients' type
	for (int i = 0; i < r->nbuckets && casts(r) && !r->settings.exchange;
		i++)
		r->ops->cast(d, array_part(d, r->gradients, r->buckets[i].offset),
			array_part(d, r->wire, r->buckets[i].offset), r->buckets[i].n);
	memset(r->announced, 0, r->nparts * sizeof *r->announced);
	r->next = r->nparts;
	r->sent = 0;
}
