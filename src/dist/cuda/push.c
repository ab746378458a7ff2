#define _GNU_SOURCE
/* push.c: collectives by copy engines */
#include <cudaTypedefs.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "device/cuda/cuda.h"
#include "dist/cuda/card.h"
#include "dist/cuda/push.h"
#include "dist/ring.h"
#include "dist/transport.h"

// lay out the arena of slots
enum { SLOT = PUSH_SLOT, SLOTS = PUSH_SLOTS, BOX = PUSH_BOX, LINE = 64,
	FLAGS = PUSH_FLAGS, DEFAULT_CTAS = 8 };
enum { FULL, FREED, FULL_OUT, FREED_OUT, READY, CAME, READY_OUT, CAME_OUT,
	NFLAGS };

// keep the state of a peer
typedef struct PushPeer {
	char *mapped;                    /* the peer's arena, in our addresses */
	/* our slots for the peer's messages; the peer's slots for ours */
	char *in, *out;
	uint32_t *flag[NFLAGS];          /* our flags, which the peer raises; words */
	uint32_t *its[NFLAGS];           /* the peer's flags, which we raise */
	/* messages queued so far, to the peer and from it */
	uint64_t sent, taken;
} PushPeer;

/* memory that this rank shares, and in our addresses that of each other rank */
typedef struct MappedMemory {
	char *own, *at[PUSH_MOST_RANKS];
	size_t nbytes;
} MappedMemory;

typedef struct Push {
	Link *link;
	Device *device;
	int rank, ranks, ctas;
	char *arena;
	PushPeer peers[PUSH_MOST_RANKS]; /* [rank] is not used */
	cudaStream_t stream;             /* of the pushes */
	cudaEvent_t point, summed;       /* of the other stream; the last sum */
	uint64_t in_place;               /* operations queued so far */
	MappedMemory *mapped;                  /* what all ranks may write to */
	int nmapped;
	PFN_cuStreamWaitValue32_v11070 wait;
	PFN_cuStreamWriteValue32_v11070 write;
} Push;

// lay out the arena of slots
/* slots for the peer in the arena of rank `of` */
static char *box_in(char *arena, int of, int peer)
{
	return arena + (size_t)(peer - (peer > of)) * BOX;
}

static uint32_t *flag_in(char *arena, int of, int peer, int ranks, int which)
{
	size_t line = (size_t)(peer - (peer > of)) * NFLAGS + which;
	return (uint32_t *)(arena + (size_t)(ranks - 1) * BOX + line * LINE);
}

// say whether pushes can work
static const char *push_why_unavailable(const Link *link, const Device *device)
{
	Card *cards = card_gather((Link *)link, device);
	const char *why = card_conflict(cards, link->ranks);
	for (int r = 1; r < link->ranks && why == NULL; r++)
		if (strcmp(cards[r].host, cards[0].host) != 0)
			why = "the ranks are on several hosts";
	if (why == NULL && link->ranks > PUSH_MOST_RANKS)
		why = "there are too many ranks";
	if (why == NULL)
		why = card_unreached((Link *)link, cards);
	free(cards);
	return why;
}

// map the memory of all ranks
static void map_memory(Push *p, MappedMemory *m, const char *doing)
{
	cudaIpcMemHandle_t *handles = need(calloc(p->ranks, sizeof *handles));
	CUDA(cudaIpcGetMemHandle(&handles[p->rank], m->own));
	p->link->number = 0, p->link->doing = doing;
	link_gather(p->link, handles, sizeof *handles);
	for (int r = 0; r < p->ranks; r++)
		if (r != p->rank)
			CUDA(cudaIpcOpenMemHandle((void **)&m->at[r], handles[r],
				cudaIpcMemLazyEnablePeerAccess));
	free(handles);
}

// map the arenas of all ranks
static void *driver_function(const char *name)
{
	void *function = NULL;
	enum cudaDriverEntryPointQueryResult found;
	CUDA(cudaGetDriverEntryPointByVersion(name, &function, 11070,
		cudaEnableDefault, &found));
	if (found != cudaDriverEntryPointSuccess)
		die("the driver has no %s (%d)", name, (int)found);
	return function;
}

// compute the addresses of a peer's slots and flags
static void init_peer(Push *p, int r, char *mapped)
{
	int rank = p->rank, ranks = p->ranks;
	PushPeer *peer = &p->peers[r];
	*peer = (PushPeer){ .mapped = mapped, .in = box_in(p->arena, rank, r),
		.out = box_in(mapped, r, rank) };
	for (int i = 0; i < NFLAGS; i++) {
		peer->flag[i] = flag_in(p->arena, rank, r, ranks, i);
		peer->its[i] = flag_in(mapped, r, rank, ranks, i);
	}
}

// exchange the arenas
static void exchange_arenas(Push *p)
{
	MappedMemory arenas = { .own = p->arena };
	device_now_ms(p->device);           /* nobody uses the arena any more */
	CUDA(cudaMemsetAsync(p->arena + (size_t)(p->ranks - 1) * BOX, 0, FLAGS,
		p->stream));
	CUDA(cudaStreamSynchronize(p->stream));
	map_memory(p, &arenas, "opening pushes");
	for (int r = 0; r < p->ranks; r++)
		if (r != p->rank)
			init_peer(p, r, arenas.at[r]);
}

// open the pushes
static void *push_open(Link *link, Device *device, const CommSettings *s)
{
	Push *p = need(calloc(1, sizeof *p));
	int least, greatest;
	*p = (Push){ .link = link, .device = device, .rank = link->rank,
		// fetch the driver's functions, and allocate the arena
		.ranks = link->ranks, .ctas = s->ctas ? s->ctas : DEFAULT_CTAS };
			p->wait = (PFN_cuStreamWaitValue32_v11070)driver_function(
		"cuStreamWaitValue32");
			p->write = (PFN_cuStreamWriteValue32_v11070)driver_function(
		"cuStreamWriteValue32");
			p->arena = device_alloc(device, push_arena_nbytes(p->ranks), MEM_TEMPORARY,
		"slots of pushes");
	// make the stream of the pushes and its events
	cuda_queue(device->state, COMM);        /* the GPU is the current one */
	CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	CUDA(cudaStreamCreateWithPriority(&p->stream, cudaStreamNonBlocking,
		greatest));
	CUDA(cudaEventCreateWithFlags(&p->point, cudaEventDisableTiming));
	CUDA(cudaEventCreateWithFlags(&p->summed, cudaEventDisableTiming));
	exchange_arenas(p);
	return p;
}

// push a message, and take one
static cudaStream_t comm_stream(const Push *p)
{
	return cuda_queue(p->device->state, COMM);
}

static void driver_expect(CUresult result, const char *call)
{
	if (result != CUDA_SUCCESS)
		die("%s: %s: error %d of the driver", __FILE__, call, (int)result);
}

// wait for a flag, and raise one
static void await_flag(Push *p, cudaStream_t stream, uint32_t *flag, uint64_t n)
{
	driver_expect(p->wait(stream, (CUdeviceptr)flag, (cuuint32_t)n,
		CU_STREAM_WAIT_VALUE_GEQ), "cuStreamWaitValue32");
}

/* sets the peer's flag to n, by way of our own word `out` */
static void raise_flag(Push *p, cudaStream_t stream, uint32_t *its,
	uint32_t *out, uint64_t n)
{
	driver_expect(p->write(stream, (CUdeviceptr)out, (cuuint32_t)n,
		CU_STREAM_WRITE_VALUE_DEFAULT), "cuStreamWriteValue32");
	CUDA(cudaMemcpyAsync(its, out, sizeof *out, cudaMemcpyDefault, stream));
}

// push one message
static void push_message(Push *p, int to, const void *x, size_t nbytes)
{
	PushPeer *peer = &p->peers[to];
	uint64_t m = ++peer->sent;
	if (m > SLOTS)
		await_flag(p, p->stream, peer->flag[FREED], m - SLOTS);
	CUDA(cudaMemcpyAsync(peer->out + m % SLOTS * SLOT, x, nbytes,
		cudaMemcpyDefault, p->stream));
	raise_flag(p, p->stream, peer->its[FULL], peer->flag[FULL_OUT], m);
}

// take a message, and free its slot
/* returns where the next message lies once the communication queue is there */
static const void *take_message(Push *p, int from)
{
	PushPeer *peer = &p->peers[from];
	uint64_t m = ++peer->taken;
	await_flag(p, comm_stream(p), peer->flag[FULL], m);
	return peer->in + m % SLOTS * SLOT;
}

/* gives the slot back, once the communication queue has used the message that was
 * taken last */
static void free_message(Push *p, int from)
{
	PushPeer *peer = &p->peers[from];
	raise_flag(p, comm_stream(p), peer->its[FREED], peer->flag[FREED_OUT],
		peer->taken);
}

// cut arrays into messages
typedef struct PushPiece {
	Array x;
	size_t n;
} PushPiece;

static size_t piece_length(const CommOp *op)
{
	return SLOT / type_size(op->x.type);
}

// find the pieces of an array
/* piece c of elements begin to end - 1; n = 0 behind the last piece */
static PushPiece piece_of(const Push *p, const CommOp *op, size_t begin,
	size_t end, size_t c)
{
	size_t each = piece_length(op), at = begin + c * each;
	size_t n = at >= end ? 0 : end - at < each ? end - at : each;
	return (PushPiece){ array_part(p->device, op->x, n ? at : begin), n };
}

static PushPiece shard_piece(const Push *p, const CommOp *op, int r, size_t c)
{
	return piece_of(p, op, shard_begin(op->n, r, p->ranks),
		shard_begin(op->n, r + 1, p->ranks), c);
}

static size_t count_pieces(const CommOp *op, size_t n)
{
	return (n + piece_length(op) - 1) / piece_length(op);
}

// push, copy and sum a piece
static void push_piece(Push *p, int to, PushPiece piece)
{
	if (piece.n > 0)
		push_message(p, to, piece.x.at, piece.n * type_size(piece.x.type));
}

static void copy_piece(Push *p, int from, PushPiece piece)
{
	if (piece.n == 0)
		return;
	Sources source = { .at = { take_message(p, from) }, .count = 1 };
	push_sum(piece.x, &source, piece.n, p->ctas, comm_stream(p));
	free_message(p, from);
}

/* the piece, which holds our own addends, becomes the sum over all ranks */
static void sum_piece(Push *p, PushPiece piece)
{
	Sources sources = { .count = p->ranks };
	if (piece.n == 0)
		return;
	for (int r = 0; r < p->ranks; r++)
		sources.at[r] = r == p->rank ? piece.x.at : take_message(p, r);
	push_sum(piece.x, &sources, piece.n, p->ctas, comm_stream(p));
	for (int r = 0; r < p->ranks; r++)
		if (r != p->rank)
			free_message(p, r);
	CUDA(cudaEventRecord(p->summed, comm_stream(p)));
}

// reduce and gather by messages
/* what is queued on `after` from now on waits for what was queued on `before` */
static void order_streams(Push *p, cudaStream_t before, cudaStream_t after)
{
	CUDA(cudaEventRecord(p->point, before));
	CUDA(cudaStreamWaitEvent(after, p->point, 0));
}

static void reduce_pair(Push *p, const CommOp *op)
{
	size_t pieces = count_pieces(op, op->n);
	for (size_t c = 0; c < pieces; c++) {
		PushPiece piece = piece_of(p, op, 0, op->n, c);
		push_piece(p, !p->rank, piece);
		order_streams(p, p->stream, comm_stream(p));
		sum_piece(p, piece);
	}
}

// push to the owners, and copy from them
/* the rank `step` places on: each rank pushes to another one first */
static int rank_behind(const Push *p, int step)
{
	return (p->rank + step) % p->ranks;
}

static void push_to_owners(Push *p, const CommOp *op, size_t c)
{
	for (int s = 1; s < p->ranks; s++) {
		int owner = rank_behind(p, s);
		push_piece(p, owner, shard_piece(p, op, owner, c));
	}
}

static void push_own(Push *p, const CommOp *op, size_t c)
{
	for (int s = 1; s < p->ranks; s++)
		push_piece(p, rank_behind(p, s), shard_piece(p, op, p->rank, c));
}

static void copy_others(Push *p, const CommOp *op, size_t c)
{
	for (int s = 1; s < p->ranks; s++) {
		int owner = rank_behind(p, s);
		copy_piece(p, owner, shard_piece(p, op, owner, c));
	}
}

// reduce and gather by owners
static void by_owners(Push *p, const CommOp *op, bool reduce, bool gather)
{
	size_t longest = op->n / p->ranks + (op->n % p->ranks != 0);
	size_t pieces = count_pieces(op, longest);
	for (size_t c = 0; c <= pieces; c++) {
		bool reduces = reduce && c < pieces, gathers = gather && c > 0;
		if (reduces)
			push_to_owners(p, op, c);
		if (reduce && gathers)
			CUDA(cudaStreamWaitEvent(p->stream, p->summed, 0));
		if (gathers)
			push_own(p, op, c - 1);
		if (reduces)
			sum_piece(p, shard_piece(p, op, p->rank, c));
		if (gathers)
			copy_others(p, op, c - 1);
	}
}

// move an array from one rank
/* from rank `from` to rank `to`; to < 0: to all other ranks */
static void move_array(Push *p, const CommOp *op, int from, int to)
{
	for (size_t c = 0; c < count_pieces(op, op->n); c++) {
		PushPiece piece = piece_of(p, op, 0, op->n, c);
		for (int r = 0; r < p->ranks && p->rank == from; r++)
			if (r != from && (to < 0 || r == to))
				push_piece(p, r, piece);
		if (p->rank != from)
			copy_piece(p, from, piece);
	}
}

// push whole arrays
/* NULL: the others may not write to x */
static const MappedMemory *mapping_of(const Push *p, const char *x)
{
	for (int i = 0; i < p->nmapped; i++) {
		const MappedMemory *m = &p->mapped[i];
		if (m->own <= x && x < m->own + m->nbytes)
			return m;
	}
	return NULL;
}

// copy what a rank gets of us
/* the part of the operation's array that rank r gets from this rank */
static PushPiece piece_for(const Push *p, const CommOp *op, int r)
{
	int shard = op->kind == ALL_GATHER ? p->rank : r;
	size_t begin = shard_begin(op->n, shard, p->ranks);
	if (op->kind == EXCHANGE)
		return (PushPiece){ op->x, op->n };
	return (PushPiece){ array_part(p->device, op->x, begin),
		shard_begin(op->n, shard + 1, p->ranks) - begin };
}

static void copy_to(const Push *p, char *at, PushPiece piece)
{
	CUDA(cudaMemcpyAsync(at, piece.x.at, piece.n * type_size(piece.x.type),
		cudaMemcpyDefault, p->stream));
}

// push arrays to where they are read
/* brings each rank's part to `place` in the array that all ranks have mapped */
static void push_in_place(Push *p, const CommOp *op, const char *place)
{
	const MappedMemory *to = mapping_of(p, place);
	ptrdiff_t skipped = place - to->own;
	uint64_t number = ++p->in_place;
	// tell all ranks that their places here are free
	for (int s = 1; s < p->ranks; s++) {
		PushPeer *peer = &p->peers[rank_behind(p, s)];
		raise_flag(p, p->stream, peer->its[READY], peer->flag[READY_OUT],
			number);
	}
	// push to each rank that is ready
	for (int s = 1; s < p->ranks; s++) {
		int r = rank_behind(p, s);
		PushPeer *peer = &p->peers[r];
		await_flag(p, p->stream, peer->flag[READY], number);
		copy_to(p, to->at[r] + skipped, piece_for(p, op, r));
		raise_flag(p, p->stream, peer->its[CAME], peer->flag[CAME_OUT], number);
	}
	for (int s = 1; s < p->ranks; s++)
		await_flag(p, p->stream, p->peers[rank_behind(p, s)].flag[CAME], number);
}

// gather shards, or push to parts
static void gather_shards(Push *p, const CommOp *op)
{
	if (mapping_of(p, op->x.at))
		push_in_place(p, op, piece_for(p, op, p->rank).x.at);
	else
		by_owners(p, op, false, true);
}

static void push_to_parts(Push *p, const CommOp *op)
{
	char *place = op->parts + p->rank * op->stride + op->skipped;
	if (op->kind == ALL_TO_ALL)
		copy_to(p, place, piece_for(p, op, p->rank));
	push_in_place(p, op, place);
}

// share an array with all ranks
static bool push_exchanges(const void *state)
{
	return true;
}

static void push_share(void *state, char *own, size_t nbytes)
{
	Push *p = state;
	p->mapped = grow(p->mapped, p->nmapped, sizeof *p->mapped);
	p->mapped[p->nmapped] = (MappedMemory){ .own = own, .nbytes = nbytes };
	cuda_queue(p->device->state, COMM);     /* the GPU is the current one */
	map_memory(p, &p->mapped[p->nmapped++], "mapping arrays");
}

// queue a collective of pushes
static void push_queue(void *state, const CommOp *op)
{
	Push *p = state;
	assert(op->x.type == FP32 || op->x.type == BF16);
	order_streams(p, comm_stream(p), p->stream);
	// queue the pushes of an operation
	switch (op->kind) {
	case ALL_REDUCE:
		if (p->ranks == 2)
			reduce_pair(p, op);
		else
			by_owners(p, op, true, true);
		break;
	case REDUCE_SCATTER:
		by_owners(p, op, true, false);
		break;
	case ALL_GATHER:
		gather_shards(p, op);
		break;
	case EXCHANGE:
	case ALL_TO_ALL:
		push_to_parts(p, op);
		break;
	case BROADCAST:
		move_array(p, op, op->peer, -1);
		break;
	case SEND:
		move_array(p, op, p->rank, op->peer);
		break;
	default:
		move_array(p, op, op->peer, p->rank);
	}
	order_streams(p, p->stream, comm_stream(p));
}

// unmap the arenas
static void unmap_peer(Push *p, int r)
{
	CUDA(cudaIpcCloseMemHandle(p->peers[r].mapped));
	for (int i = 0; i < p->nmapped; i++)
		CUDA(cudaIpcCloseMemHandle(p->mapped[i].at[r]));
}

static void push_close(void *state)
{
	Push *p = state;
	CUDA(cudaStreamSynchronize(comm_stream(p)));
	CUDA(cudaStreamSynchronize(p->stream));
	card_meet(p->link, "closing pushes");
	for (int r = 0; r < p->ranks; r++)
		if (r != p->rank)
			unmap_peer(p, r);
	card_meet(p->link, "closing pushes");
	device_free(p->device, p->arena);
	CUDA(cudaStreamDestroy(p->stream));
	CUDA(cudaEventDestroy(p->point));
	CUDA(cudaEventDestroy(p->summed));
	free(p->mapped);
	free(p);
}

const Transport push_transport = {
	.name = "push", .why_unavailable = push_why_unavailable, .open = push_open,
	.close = push_close, .queue = push_queue,
	.exchanges = push_exchanges, .share = push_share, .device_side = true,
};
