#define _GNU_SOURCE
#include "dist/comm.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/random.h"
#include "base/stats.h"
#include "dist/ring.h"
#include "dist/transports.h"

enum { LIMIT_S = 30, DOING = 96 };

// declare a pending operation
/* an operation that was queued and may not have ended */
typedef struct Pending {
	Event event;
	bool held;                       /* by the host, until it is released */
	char text[OPERATION_TEXT];
} Pending;

struct Comm {
	Link *link;
	Device *device;
	const Transport *transport;
	void *state;
	CommSettings settings;
	uint64_t number, gathers, hash, delays;
	double bytes[NCOLLECTIVES];      /* sent */
	/* messages to and from each rank */
	uint64_t *sent, *received;
	// declare the arrays that were given out
	/* arrays of comm_array; stride: bytes between the parts of comm_parts, else
	 * 0 */
	struct CommArray {
		char *at;
		bool pooled;
		size_t stride, nbytes;
		Category category;
		const char *what;
	} *arrays;
	int narrays;
	/* operation i is pending[i % capacity] */
	Pending *pending;
	size_t capacity, first, end;
	Patience patience;               /* with the first, which is the oldest */
	bool lost;                       /* a closed end was seen, */
	Patience grace;                  /* and this is left until that is said */
	bool closing;
	pthread_t watchdog;
	pthread_mutex_t lock;
	pthread_cond_t changed;
};

// answer questions about a communicator
int comm_rank(const Comm *c)
{
	return c->link->rank;
}

int comm_ranks(const Comm *c)
{
	return c->link->ranks;
}

const char *comm_transport(const Comm *c)
{
	return c->transport->name;
}

// remember operations until they have ended
/* with the lock held; drops the oldest operations that have ended, and tells the
 * parent which one is the oldest now */
static void drop_ended(Comm *c)
{
	size_t first = c->first;
	while (c->first < c->end) {
		const Pending *p = &c->pending[c->first % c->capacity];
		if (p->held || !device_reached(c->device, p->event))
			break;
		c->first++;
	}
	if (c->first > first)
		c->patience = patience_of(c->settings.limit_s * 1e3);
	if (c->settings.doing)
		snprintf(c->settings.doing, DOING, "%s", c->first == c->end ? ""
			: c->pending[c->first % c->capacity].text);
}

static void add_pending(Comm *c, Event event, bool held, const char *text)
{
	pthread_mutex_lock(&c->lock);
	if (c->end - c->first == c->capacity)
		c->pending = grow_ring(c->pending, &c->capacity, c->first, c->end,
			sizeof *c->pending);
	if (c->first == c->end)
		c->patience = patience_of(c->settings.limit_s * 1e3);
	Pending *p = &c->pending[c->end++ % c->capacity];
	*p = (Pending){ event, held, "" };
	snprintf(p->text, sizeof p->text, "%s", text);
	drop_ended(c);
	pthread_mutex_unlock(&c->lock);
}

// watch the oldest operation
enum { GRACE_MS = 1000 };

static void check_lost(Comm *c)
{
	int r = 0;
	if (!c->transport->device_side || !c->link->lost)
		return;
	while (r < c->link->ranks
		&& (r == c->link->rank || !c->link->lost(c->link, r)))
		r++;
	if (r == c->link->ranks)
		return;
	if (!c->lost)
		c->grace = patience_of(GRACE_MS);
	c->lost = true;
	if (patience_left(&c->grace) == 0)
		die_at_once("rank %d: lost rank %d in %s", c->link->rank, r,
			c->pending[c->first % c->capacity].text);
}

static void check_oldest(Comm *c)
{
	drop_ended(c);
	if (c->first == c->end)
		return;
	check_lost(c);
	if (patience_left(&c->patience) > 0)
		return;
	die_at_once("rank %d: %s has not ended after %d s", c->link->rank,
		c->pending[c->first % c->capacity].text, c->settings.limit_s);
}

static void *run_watchdog(void *comm)
{
	Comm *c = comm;
	pthread_mutex_lock(&c->lock);
	while (!c->closing) {
		struct timespec next;
		clock_gettime(CLOCK_REALTIME, &next);
		next.tv_nsec += LOOK_MS * 1000000;
		next.tv_sec += next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&c->changed, &c->lock, &next);
		check_oldest(c);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

// queue an operation
static void count_operation(Comm *c, CommOp *op)
{
	uint64_t facts[] = { op->kind, op->n, op->x.type, (uint64_t)op->peer };
	if (op->kind == SEND || op->kind == RECEIVE) {
		uint64_t *n = op->kind == SEND ? c->sent : c->received;
		op->number = MESSAGES + ++n[op->peer];
		return;
	}
	op->number = ++c->number;
	c->hash = hash_bytes(c->hash, facts, sizeof facts);
}

// delay operations, and count their bytes
/* in the communication queue */
static void random_delay(void *comm)
{
	Comm *c = comm;
	double part = random_uniform(1, (uint64_t)c->link->rank, c->delays++);
	usleep((unsigned)(part * c->settings.delay_us));
}

static void count_bytes(Comm *c, const CommOp *op)
{
	static const double times[NCOLLECTIVES] = { [ALL_REDUCE] = 2,
		[REDUCE_SCATTER] = 1, [ALL_GATHER] = 1, [ALL_TO_ALL] = 1,
		[BROADCAST] = 1 };
	double ranks = c->link->ranks, nbytes = (double)op->n
		* type_size(op->x.type);
	if (op->kind == SEND)
		c->bytes[SEND] += nbytes;
	else if (op->kind == EXCHANGE)
		c->bytes[EXCHANGE] += (ranks - 1) * nbytes;
	else
		c->bytes[op->kind] += times[op->kind] * (ranks - 1) / ranks * nbytes;
}

// put one operation into the queue
double comm_sent(const Comm *c, Collective kind)
{
	return c->bytes[kind];
}

static Event queue_operation(Comm *c, CommOp op)
{
	char text[OPERATION_TEXT];
	assert(op.x.type == FP32 || op.x.type == BF16 || op.x.type == TYPE_REAL);
	assert(op.peer >= 0 && op.peer < c->link->ranks);
	count_operation(c, &op);
	count_bytes(c, &op);
	operation_text(text, &op, c->link->rank);
	if (c->settings.delay_us > 0)
		device_call(c->device, COMM, random_delay, c);
	if (op.n > 0)
		c->transport->queue(c->state, &op);
	Event event = device_event(c->device, COMM);
	add_pending(c, event, false, text);
	return event;
}

// queue collectives by their names
Event comm_all_reduce(Comm *c, Array x, size_t n, const char *what, int index)
{
	return queue_operation(c, (CommOp){ ALL_REDUCE, x, n, .what = what,
		.index = index });
}

Event comm_reduce_scatter(Comm *c, Array x, size_t n, const char *what,
	int index)
{
	return queue_operation(c, (CommOp){ REDUCE_SCATTER, x, n, .what = what,
		.index = index });
}

Event comm_all_gather(Comm *c, Array x, size_t n, const char *what, int index)
{
	return queue_operation(c, (CommOp){ ALL_GATHER, x, n, .what = what,
		.index = index });
}

Event comm_broadcast(Comm *c, Array x, size_t n, int root, const char *what,
	int index)
{
	return queue_operation(c, (CommOp){ BROADCAST, x, n, root, .what = what,
		.index = index });
}

// queue messages between two ranks
Event comm_send(Comm *c, Array x, size_t n, int to, const char *what, int index)
{
	return queue_operation(c, (CommOp){ SEND, x, n, to, .what = what,
		.index = index });
}

Event comm_receive(Comm *c, Array x, size_t n, int from, const char *what,
	int index)
{
	return queue_operation(c, (CommOp){ RECEIVE, x, n, from, .what = what,
		.index = index });
}

// exchange values between hosts
static void gather_named(Comm *c, void *all, size_t nbytes, const char *what)
{
	char text[OPERATION_TEXT];
	snprintf(text, sizeof text, "%s %llu", what,
		(unsigned long long)++c->gathers);
	c->device->backend->synchronize(c->device->state, COMM);
	add_pending(c, (Event){ 0 }, true, text);
	c->link->number = c->gathers;
	c->link->doing = text;
	link_gather(c->link, all, nbytes);
	c->link->doing = NULL;
	pthread_mutex_lock(&c->lock);
	c->pending[(c->end - 1) % c->capacity].held = false;
	drop_ended(c);
	pthread_mutex_unlock(&c->lock);
}

// wait for all ranks, gather their values
void comm_gather_host(Comm *c, void *all, size_t nbytes)
{
	gather_named(c, all, nbytes, "gather");
}

void comm_barrier(Comm *c)
{
	char *all = need(calloc((size_t)c->link->ranks, 1));
	gather_named(c, all, 1, "barrier");
	free(all);
}

static double *gather_double(Comm *c, double x, const char *what)
{
	double *all = need(malloc(c->link->ranks * sizeof *all));
	all[c->link->rank] = x;
	gather_named(c, all, sizeof x, what);
	return all;
}

// add up a value over the ranks
double comm_sum(Comm *c, double x)
{
	double *all = gather_double(c, x, "sum"), sum = 0;
	for (int r = 0; r < c->link->ranks; r++)
		sum += all[r];
	free(all);
	return sum;
}

double comm_max(Comm *c, double x)
{
	double *all = gather_double(c, x, "maximum"), max = all[0];
	for (int r = 1; r < c->link->ranks; r++)
		max = max_or_nan(max, all[r]);
	free(all);
	return max;
}

// compare the orders of all ranks
void comm_check_order(Comm *c)
{
	typedef struct Order { uint64_t number, hash; } Order;
	Order *all = need(malloc(c->link->ranks * sizeof *all)),
		own = { c->number, c->hash };
	all[c->link->rank] = own;
	gather_named(c, all, sizeof *all, "comparison of orders");
	for (int r = 0; r < c->link->ranks; r++)
		if (all[r].number != own.number || all[r].hash != own.hash)
			die("rank %d: rank %d has queued %llu collectives, this one %llu%s",
				c->link->rank, r, (unsigned long long)all[r].number,
				(unsigned long long)own.number,
				all[r].number == own.number ? " others" : "");
	free(all);
}

// check that all ranks answer
static void check_ranks(Comm *c)
{
	real one = 1;
	Array x = array_new(c->device, 1, FP32, MEM_TEMPORARY, "ones");
	array_write(c->device, x, &one, 1);
	device_wait(c->device, COMM, device_event(c->device, COMPUTE));
	device_wait(c->device, COMPUTE, comm_all_reduce(c, x, 1, "ones", 0));
	array_read(c->device, &one, x, 1);
	device_free(c->device, x.at);
	if (one != c->link->ranks)
		die("rank %d: %g ranks answer, not %d", c->link->rank, (double)one,
			c->link->ranks);
}

// open a communicator
Comm *comm_open(Link *link, Device *device, const CommSettings *settings)
{
	Comm *c = need(calloc(1, sizeof *c));
	c->link = link;
	c->device = device;
	c->hash = HASH_START;
	if (settings)
		c->settings = *settings;
	if (c->settings.limit_s == 0)
		c->settings.limit_s = LIMIT_S;
	c->sent = need(calloc((size_t)link->ranks, sizeof *c->sent));
	c->received = need(calloc((size_t)link->ranks, sizeof *c->received));
	c->transport = transport_choose(link, device, &c->settings);
	c->state = c->transport->open(link, device, &c->settings);
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	if (pthread_create(&c->watchdog, NULL, run_watchdog, c) != 0)
		die("no thread for the watchdog");
	if (!device->backend->dry)
		check_ranks(c);
	return c;
}

// give out an array
static size_t round_up(size_t nbytes, size_t unit)
{
	return (nbytes + unit - 1) / unit * unit;
}

Array comm_array(Comm *c, size_t n, Type type, Category category,
	const char *what)
{
	size_t unit = c->transport->share ? SHARED_UNIT : 1,
		nbytes = round_up(n * c->device->backend->width(type), unit);
	void *at = c->transport->alloc ? c->transport->alloc(c->state, nbytes)
		: NULL;
	bool pooled = at == NULL;
	if (pooled)
		at = device_alloc(c->device, nbytes, category, what);
	else
		device_count(c->device, at, nbytes, category, what, true);
	if (c->transport->share)
		c->transport->share(c->state, at, nbytes);
	c->arrays = grow(c->arrays, c->narrays, sizeof *c->arrays);
	c->arrays[c->narrays++] = (struct CommArray){ at, pooled, 0, nbytes,
		category, what };
	return (Array){ at, type };
}

// close a communicator
static void stop_watching(Comm *c)
{
	pthread_mutex_lock(&c->lock);
	c->closing = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->watchdog, NULL);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->changed);
}

static void free_array(Comm *c, const struct CommArray *g)
{
	if (g->pooled) {
		device_free(c->device, g->at);
		return;
	}
	c->transport->free(c->state, g->at);
	device_count(c->device, g->at, g->nbytes, g->category, g->what, false);
}

void comm_close(Comm **comm)
{
	Comm *c = *comm;
	c->device->backend->synchronize(c->device->state, COMM);
	stop_watching(c);
	for (int i = 0; i < c->narrays; i++)
		free_array(c, &c->arrays[i]);
	c->transport->close(c->state);
	link_close(&c->link);
	free(c->arrays);
	free(c->pending);
	free(c->sent);
	free(c->received);
	free(c);
	*comm = NULL;
}

// exchange whole arrays
enum { UNIT = 256 };

bool comm_exchanges(const Comm *c)
{
	return c->link->ranks <= MOST_GRADIENTS && c->transport->exchanges
		&& c->transport->exchanges(c->state);
}

Gradients comm_parts(Comm *c, size_t n, Type type, Category category,
	const char *what)
{
	size_t width = c->device->backend->width(type),
		stride = round_up(n * width, UNIT);
	Gradients parts = { .n = c->link->ranks };
	assert(comm_exchanges(c));
	Array all = comm_array(c, stride / width * parts.n, type, category, what);
	c->arrays[c->narrays - 1].stride = stride;
	for (int r = 0; r < parts.n; r++)
		parts.at[r] = (Array){ (char *)all.at + r * stride, type };
	return parts;
}

static const struct CommArray *parts_containing(const Comm *c, const char *x)
{
	for (int i = 0; i < c->narrays; i++) {
		const struct CommArray *g = &c->arrays[i];
		const char *own = g->at + c->link->rank * g->stride;
		if (own <= x && x < own + g->stride)
			return g;
	}
	die("what is exchanged lies in none of the rank's own arrays");
}

static Event queue_to_parts(Comm *c, CommOp op, const char *to)
{
	const struct CommArray *g = parts_containing(c, to);
	op.parts = g->at;
	op.stride = g->stride;
	op.skipped = (size_t)(to - g->at) % g->stride;
	return queue_operation(c, op);
}

Event comm_exchange(Comm *c, Array x, size_t n, const char *what, int index)
{
	return queue_to_parts(c, (CommOp){ EXCHANGE, x, n, .what = what,
		.index = index }, x.at);
}

Event comm_all_to_all(Comm *c, Array x, size_t n, Array to, const char *what,
	int index)
{
	assert(to.type == x.type);
	return queue_to_parts(c, (CommOp){ ALL_TO_ALL, x, n, .what = what,
		.index = index }, to.at);
}
