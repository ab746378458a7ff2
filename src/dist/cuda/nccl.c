#define _GNU_SOURCE
/* nccl.c: collectives by NVIDIA's library */
#include <nccl.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/grow.h"
#include "device/cuda/cuda.h"
#include "dist/cuda/card.h"
#include "dist/ring.h"
#include "dist/transport.h"

// end the program when a call to NCCL fails
#define NCCL(call) nccl_expect((call), #call, __LINE__)

static void nccl_expect(ncclResult_t result, const char *call, int line)
{
	if (result != ncclSuccess)
		die("%s:%d: %s: %s (%s)", __FILE__, line, call,
			ncclGetErrorString(result), ncclGetLastError(NULL));
}

// keep the communicator of NCCL and its windows
typedef struct Window {
	char *at;
	size_t nbytes;
	ncclWindow_t handle;             /* NULL: NCCL has no windows here */
} Window;

typedef struct Nccl {
	Link *link;
	Device *device;
	ncclComm_t comm;
	bool symmetric;
	Window *windows;
	int nwindows;
} Nccl;

// say whether NCCL can work, and make its communicator
static const char *nccl_why_unavailable(const Link *link, const Device *device)
{
	Card *cards = card_gather((Link *)link, device);
	const char *conflict = card_conflict(cards, link->ranks);
	free(cards);
	return conflict;
}

static void *open_with(Link *link, Device *device, int ctas, bool symmetric)
{
	Nccl *c = need(calloc(1, sizeof *c));
	ncclUniqueId id;
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	*c = (Nccl){ .link = link, .device = device, .symmetric = symmetric };
	if (ctas) {
		config.minCTAs = config.maxCTAs = ctas;
		config.cgaClusterSize = 0;
	}
	setenv("NCCL_NVLS_ENABLE", "0", 0);
	if (link->rank == 0)
		NCCL(ncclGetUniqueId(&id));
	link->number = 0, link->doing = "opening NCCL";
	link_broadcast(link, &id, sizeof id, 0);
	cuda_queue(device->state, COMM);        /* the GPU is the current one */
	NCCL(ncclCommInitRankConfig(&c->comm, link->ranks, id, link->rank,
		&config));
	return c;
}

// open NCCL, and name its version
static void *nccl_open(Link *link, Device *device, const CommSettings *s)
{
	return open_with(link, device, s->ctas, false);
}

static void *symmetric_open(Link *link, Device *device, const CommSettings *s)
{
	return open_with(link, device, s->ctas, true);
}

static const char *nccl_library(void)
{
	static char text[64];
	int v = 0;
	NCCL(ncclGetVersion(&v));
	snprintf(text, sizeof text, "NCCL %d.%d.%d, built with %d.%d.%d", v / 10000,
		v / 100 % 100, v % 100, NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
	return text;
}

// give out windows, and take them back
static void *nccl_alloc(void *state, size_t nbytes)
{
	Nccl *c = state;
	Window w = { .nbytes = nbytes };
	if (!c->symmetric)
		return NULL;
	cuda_queue(c->device->state, COMM);
	if (ncclMemAlloc((void **)&w.at, nbytes) != ncclSuccess)
		c->device->on_oom(nbytes, c->device->limit - c->device->reserved,
			"window of NCCL");
	NCCL(ncclCommWindowRegister(c->comm, w.at, nbytes, &w.handle,
		NCCL_WIN_COLL_SYMMETRIC));
	c->windows = grow(c->windows, c->nwindows, sizeof w);
	c->windows[c->nwindows++] = w;
	return w.at;
}

// free a window, and find one
static Window *window_of(Nccl *c, const char *p)
{
	for (Window *w = c->windows; w < c->windows + c->nwindows; w++)
		if (w->at <= p && p < w->at + w->nbytes)
			return w;
	return NULL;
}

static void nccl_free(void *state, void *p)
{
	Nccl *c = state;
	Window *w = window_of(c, p);
	assert(w && "the memory is NCCL's");
	CUDA(cudaStreamSynchronize(cuda_queue(c->device->state, COMM)));
	card_meet(c->link, "freeing an array of NCCL");
	if (w->handle)
		NCCL(ncclCommWindowDeregister(c->comm, w->handle));
	NCCL(ncclMemFree(w->at));
	*w = c->windows[--c->nwindows];
}

// choose the kernel for a collective
/* does NCCL's own collective take the array, as one that is cut into `shards`
 * equal shards? */
static bool nccl_takes(Nccl *c, const CommOp *op, size_t shards)
{
	const Window *w = window_of(c, op->x.at);
	size_t nbytes = op->n / shards * type_size(op->x.type);
	if (op->n % shards != 0)
		return false;
	return !w || !w->handle
		|| (nbytes % 16 == 0 && (uintptr_t)op->x.at % 16 == 0);
}

// call NCCL for each shard
static ncclDataType_t nccl_type(const CommOp *op)
{
	assert(op->x.type == FP32 || op->x.type == BF16);
	return op->x.type == BF16 ? ncclBfloat16 : ncclFloat32;
}

/* calls one(c, op, shard, count, owner) for every shard with elements, as one
 * group */
static void by_shards(Nccl *c, const CommOp *op,
	void (*one)(Nccl *c, const CommOp *op, void *x, size_t n, int owner))
{
	int ranks = c->link->ranks;
	NCCL(ncclGroupStart());
	for (int r = 0; r < ranks; r++) {
		size_t begin = shard_begin(op->n, r, ranks);
		size_t n = shard_begin(op->n, r + 1, ranks) - begin;
		if (n > 0)
			one(c, op, array_part(c->device, op->x, begin).at, n, r);
	}
	NCCL(ncclGroupEnd());
}

static void reduce_one(Nccl *c, const CommOp *op, void *x, size_t n,
	int owner)
{
	NCCL(ncclReduce(x, x, n, nccl_type(op), ncclSum, owner, c->comm,
		cuda_queue(c->device->state, COMM)));
}

static void broadcast_one(Nccl *c, const CommOp *op, void *x, size_t n,
	int owner)
{
	NCCL(ncclBroadcast(x, x, n, nccl_type(op), owner, c->comm,
		cuda_queue(c->device->state, COMM)));
}

// queue a collective of NCCL
static void nccl_all_reduce(Nccl *c, const CommOp *op)
{
	void *x = op->x.at;
	if (nccl_takes(c, op, 1)) {
		NCCL(ncclAllReduce(x, x, op->n, nccl_type(op), ncclSum, c->comm,
			cuda_queue(c->device->state, COMM)));
	} else {
		by_shards(c, op, reduce_one);
		by_shards(c, op, broadcast_one);
	}
}

static void nccl_by_shards(Nccl *c, const CommOp *op)
{
	size_t each = op->n / c->link->ranks;
	void *x = op->x.at,
		*own = array_part(c->device, op->x, each * c->link->rank).at;
	cudaStream_t stream = cuda_queue(c->device->state, COMM);
	bool reduces = op->kind == REDUCE_SCATTER;
	if (!nccl_takes(c, op, c->link->ranks))
		by_shards(c, op, reduces ? reduce_one : broadcast_one);
	else if (reduces)
		NCCL(ncclReduceScatter(x, own, each, nccl_type(op), ncclSum, c->comm,
			stream));
	else
		NCCL(ncclAllGather(own, x, each, nccl_type(op), c->comm, stream));
}

static void nccl_queue(void *state, const CommOp *op)
{
	Nccl *c = state;
	cudaStream_t stream = cuda_queue(c->device->state, COMM);
	// call the function of NCCL for this kind
	switch (op->kind) {
	case ALL_REDUCE:
		nccl_all_reduce(c, op);
		break;
	case REDUCE_SCATTER:
	case ALL_GATHER:
		nccl_by_shards(c, op);
		break;
	case BROADCAST:
		broadcast_one(c, op, op->x.at, op->n, op->peer);
		break;
	case SEND:
		NCCL(ncclSend(op->x.at, op->n, nccl_type(op), op->peer, c->comm,
			stream));
		break;
	default:
		NCCL(ncclRecv(op->x.at, op->n, nccl_type(op), op->peer, c->comm,
			stream));
	}
}

// close the communicator of NCCL
static void nccl_close(void *state)
{
	Nccl *c = state;
	while (c->nwindows > 0)
		nccl_free(c, c->windows[c->nwindows - 1].at);
	CUDA(cudaStreamSynchronize(cuda_queue(c->device->state, COMM)));
	card_meet(c->link, "closing NCCL");
	NCCL(ncclCommDestroy(c->comm));
	free(c->windows);
	free(c);
}

const Transport nccl_transport = {
	.name = "nccl", .why_unavailable = nccl_why_unavailable,
	.open = nccl_open, .close = nccl_close, .queue = nccl_queue,
	.alloc = nccl_alloc,
	.free = nccl_free, .library = nccl_library, .device_side = true,
};
const Transport symmetric_transport = {
	.name = "symmetric", .why_unavailable = nccl_why_unavailable,
	.open = symmetric_open, .close = nccl_close, .queue = nccl_queue,
	.alloc = nccl_alloc,
	.free = nccl_free, .library = nccl_library, .device_side = true,
};
