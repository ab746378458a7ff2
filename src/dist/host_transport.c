/* collectives over a link, by way of the host's memory */
#include "dist/host_transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "dist/ring.h"

/* words: elements as they travel, packed */
typedef struct HostTransport {
	Link *link;
	Device *device;
	HostCollectives by;
	char *scratch, *words;
	size_t scratch_room, words_room;
	bool in_place;                   /* the device's memory is the host's */
} HostTransport;

/* an operation on its way through the communication queue */
typedef struct HostJob {
	HostTransport *host;
	CommOp op;
} HostJob;

/* *room, enlarged to at least nbytes; its contents are lost when it grows */
static void *grow_buffer(char **room, size_t *have, size_t nbytes)
{
	if (*have < nbytes) {
		free(*room);
		*room = need(malloc(nbytes));
		*have = nbytes;
	}
	return *room;
}

// say which elements a collective reads and which it writes
typedef struct HostRange { size_t begin, n; } HostRange;

static HostRange shard_of(const HostTransport *h, size_t n, int r)
{
	size_t begin = shard_begin(n, r, h->link->ranks);
	return (HostRange){ begin,
		shard_begin(n, r + 1, h->link->ranks) - begin };
}

static HostRange own_shard(const HostTransport *h, size_t n)
{
	return shard_of(h, n, h->link->rank);
}

// choose the elements to pack and to unpack
static HostRange elements_read(const HostTransport *h, const CommOp *op)
{
	bool none = op->kind == RECEIVE
		|| (op->kind == BROADCAST && op->peer != h->link->rank);
	return op->kind == ALL_GATHER ? own_shard(h, op->n)
		: (HostRange){ 0, none ? 0 : op->n };
}

static HostRange elements_written(const HostTransport *h, const CommOp *op)
{
	bool none = op->kind == SEND
		|| (op->kind == BROADCAST && op->peer == h->link->rank);
	return op->kind == REDUCE_SCATTER ? own_shard(h, op->n)
		: (HostRange){ 0, none ? 0 : op->n };
}

// run a collective on words in the host's memory
/* text: it is there until the operation ends */
static void begin_operation(Link *link, const CommOp *op,
	char text[OPERATION_TEXT])
{
	operation_text(text, op, link->rank);
	link->number = op->number;
	link->doing = text;
}

static void end_operation(Link *link)
{
	link->doing = NULL;
}

// run one collective of the host
static void run_on_words(HostTransport *h, const CommOp *op, void *x)
{
	Link *link = h->link;
	Type type = op->x.type;
	size_t n = op->n, size = type_size(type);
	char text[OPERATION_TEXT];
	void *scratch = grow_buffer(&h->scratch, &h->scratch_room,
		(2 * n + (size_t)link->ranks) * size);
	begin_operation(link, op, text);
	switch (op->kind) {
	case ALL_REDUCE: h->by.all_reduce(link, x, n, type, scratch); break;
	case REDUCE_SCATTER: h->by.reduce_scatter(link, x, n, type, scratch); break;
	case ALL_GATHER: h->by.all_gather(link, x, n, type); break;
	case BROADCAST: h->by.broadcast(link, x, n * size, op->peer); break;
	case SEND: link->exchange(link, op->peer, x, n * size, op->peer, NULL, 0);
		break;
	default: link->exchange(link, op->peer, NULL, 0, op->peer, x, n * size);
	}
	end_operation(link);
}

// exchange whole arrays over the link
static void fill_part(const CommOp *op, int r, const char *words, size_t n)
{
	char *to = op->parts + r * op->stride + op->skipped;
	unpack_array(op->x.type, (real *)to, words, n);
}

static void run_to_parts(HostTransport *h, const CommOp *op)
{
	Link *link = h->link;
	int N = link->ranks;
	size_t size = type_size(op->x.type), nbytes = op->n * size;
	bool shards = op->kind == ALL_TO_ALL;
	HostRange all = { 0, op->n },
		own = shards ? own_shard(h, op->n) : all;
	char text[OPERATION_TEXT],
		*out = grow_buffer(&h->words, &h->words_room, nbytes),
		*in = grow_buffer(&h->scratch, &h->scratch_room, nbytes);
	begin_operation(link, op, text);
	pack_array(op->x.type, out, op->x.at, op->n);
	// exchange with each other rank in turn
	for (int s = 1; s < N; s++) {
		int from = (link->rank + N - s) % N, to = (link->rank + s) % N;
		HostRange sent = shards ? shard_of(h, op->n, to) : all;
		link->exchange(link, to, out + sent.begin * size, sent.n * size,
			from, in, own.n * size);
		fill_part(op, from, in, own.n);
	}
	if (shards)
		fill_part(op, link->rank, out + own.begin * size, own.n);
	end_operation(link);
}

// queue a collective on the CPU
static void run_on_cpu(void *arg)
{
	HostJob *job = arg;
	HostTransport *h = job->host;
	const CommOp *op = &job->op;
	if (op->kind == EXCHANGE || op->kind == ALL_TO_ALL) {
		run_to_parts(h, op);
	} else if (op->x.type == TYPE_REAL) {
		run_on_words(h, op, op->x.at);
	} else {
		size_t size = type_size(op->x.type);
		char *words = grow_buffer(&h->words, &h->words_room, op->n * size);
		real *x = op->x.at;
		HostRange in = elements_read(h, op), out = elements_written(h, op);
		pack_array(op->x.type, words + in.begin * size, x + in.begin, in.n);
		run_on_words(h, op, words);
		unpack_array(op->x.type, x + out.begin, words + out.begin * size,
			out.n);
	}
	free(job);
}

// queue a collective on a GPU
static void run_on_copy(void *arg)
{
	HostJob *job = arg;
	run_on_words(job->host, &job->op, job->host->words);
	free(job);
}

/* grows the packed words for a collective of a GPU. (Those of a CPU grow in the
 * queue itself, by grow_buffer) */
static void make_words(HostTransport *h, size_t nbytes)
{
	if (h->words_room >= nbytes)
		return;
	h->device->backend->synchronize(h->device->state, COMM);
	device_host_free(h->device, h->words);
	h->words = device_host_alloc(h->device, nbytes);
	h->words_room = nbytes;
}

static void copy_range(HostTransport *h, const CommOp *op, HostRange s,
	bool to_host)
{
	size_t size = h->device->backend->width(op->x.type);
	char *x = (char *)op->x.at + s.begin * size,
		*words = h->words + s.begin * size;
	if (s.n > 0)
		device_copy(h->device, COMM, to_host ? words : x, to_host ? x : words,
			s.n * size);
}

void host_queue(void *state, const CommOp *op)
{
	HostTransport *h = state;
	HostJob *job = need(malloc(sizeof *job));
	*job = (HostJob){ h, *op };
	if (h->in_place) {
		device_call(h->device, COMM, run_on_cpu, job);
		return;
	}
	make_words(h, op->n * h->device->backend->width(op->x.type));
	copy_range(h, op, elements_read(h, op), true);
	device_call(h->device, COMM, run_on_copy, job);
	copy_range(h, op, elements_written(h, op), false);
}

// the transports over a link
static const char *always_available(const Link *link, const Device *device)
{
	return NULL;
}

void *host_open(Link *link, Device *device, HostCollectives by)
{
	HostTransport *h = need(calloc(1, sizeof *h));
	*h = (HostTransport){ .link = link, .device = device, .by = by,
		.in_place = strcmp(device->backend->name, "cpu") == 0 };
	return h;
}

// open the three transports
static void *open_link(Link *link, Device *device, HostReduction *all_reduce,
	HostReduction *reduce_scatter)
{
	return host_open(link, device, (HostCollectives){ all_reduce,
		reduce_scatter, link_all_gather, link_broadcast });
}

static void *open_ring(Link *link, Device *device, const CommSettings *s)
{
	return open_link(link, device, link_all_reduce, link_reduce_scatter);
}

static void *open_owner(Link *link, Device *device, const CommSettings *s)
{
	return open_link(link, device, owner_all_reduce, owner_reduce_scatter);
}

static void *open_alternate(Link *link, Device *device, const CommSettings *s)
{
	return open_link(link, device, alternate_ring_link, link_reduce_scatter);
}

// close a transport over a link
void host_close(void *state)
{
	HostTransport *h = state;
	free(h->scratch);
	device_host_free(h->device, h->words);
	free(h);
}

bool host_exchanges(const void *state)
{
	return ((const HostTransport *)state)->in_place;
}

#define OVER_LINK(NAME, OPEN) { .name = NAME, \
	.why_unavailable = always_available, \
	.open = OPEN, .close = host_close, .queue = host_queue, \
	.exchanges = host_exchanges }
const Transport ring_transport = OVER_LINK("ring", open_ring),
	owner_transport = OVER_LINK("owner", open_owner),
	alternate_transport = OVER_LINK("alternate", open_alternate);
