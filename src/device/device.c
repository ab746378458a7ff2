#include "device/device.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/grow.h"
#include "device/cpu.h"
#include "device/dry.h"
#ifdef HAVE_CUDA
#include "device/cuda/cuda.h"
#endif

const char *const category_names[NCATEGORIES] = { CHOICE_NAMES(CATEGORIES_OF) };

// keep blocks in a pool
typedef struct PoolBlock {
	void *at;
	size_t nbytes;
	const char *what;
	Category category;
	bool used;
	bool kept;           /* a captured graph holds its address */
	Event until;         /* the communication queue uses it until then */
} PoolBlock;

typedef struct Pool {
	PoolBlock *blocks;
	size_t n;
} Pool;

static PoolBlock *find_free_block(Device *d, size_t nbytes)
{
	PoolBlock *busy = NULL;
	for (size_t i = d->pool->n; i-- > 0;) {
		PoolBlock *b = &d->pool->blocks[i];
		if (b->used || b->nbytes != nbytes || (b->kept && !d->capturing))
			continue;
		if (device_reached(d, b->until))
			return b;
		busy = busy ? busy : b;
	}
	return d->capturing ? NULL : busy;
}

static PoolBlock *find_used_block(Pool *pool, const void *p)
{
	for (size_t i = pool->n; i-- > 0;)
		if (pool->blocks[i].at == p && pool->blocks[i].used)
			return &pool->blocks[i];
	return NULL;
}

static void trim_pool(Device *d)
{
	Pool *pool = d->pool;
	size_t kept = 0;
	for (size_t i = 0; i < pool->n; i++) {
		if (pool->blocks[i].used || pool->blocks[i].kept) {
			pool->blocks[kept++] = pool->blocks[i];
			continue;
		}
		if (!device_reached(d, pool->blocks[i].until))
			d->backend->synchronize(d->state, COMM);
		d->backend->free(d->state, pool->blocks[i].at);
		d->reserved -= pool->blocks[i].nbytes;
	}
	pool->n = kept;
}

static void *alloc_within_limit(Device *d, size_t nbytes)
{
	if (d->reserved + nbytes > d->limit)
		return NULL;
	double start = clock_ms();
	void *at = d->backend->alloc(d->state, nbytes);
	d->alloc_ms += clock_ms() - start;
	return at;
}

/* adds a block to the pool, of new memory; NULL: there is none, even after what
 * is free was returned */
static PoolBlock *add_block(Device *d, size_t nbytes)
{
	Pool *pool = d->pool;
	void *at = alloc_within_limit(d, nbytes);
	if (at == NULL) {
		trim_pool(d);           /* pages may be larger than blocks */
		at = alloc_within_limit(d, nbytes);
	}
	if (at == NULL)
		return NULL;
	pool->blocks = grow(pool->blocks, pool->n, sizeof *pool->blocks);
	d->reserved += nbytes;
	pool->blocks[pool->n] = (PoolBlock){ .at = at, .nbytes = nbytes };
	return &pool->blocks[pool->n++];
}

static size_t round_up_to_lines(size_t nbytes)
{
	return (nbytes + 63) & ~(size_t)63;
}

bool device_reserve(Device *d, size_t nbytes)
{
	nbytes = round_up_to_lines(nbytes);
	return nbytes == 0 || find_free_block(d, nbytes) || add_block(d, nbytes);
}

static PoolBlock *take_block(Device *d, size_t nbytes, const char *what)
{
	PoolBlock *b = find_free_block(d, nbytes);
	if (b == NULL)
		b = add_block(d, nbytes);
	if (b == NULL && d->deferral) {         /* it may have freed memory */
		device_flush_deferred(d, "memory is needed");
		b = find_free_block(d, nbytes);
		b = b ? b : add_block(d, nbytes);
	}
	if (b == NULL)
		d->on_oom(nbytes, d->limit - d->reserved, what);
	if (!d->capturing)
		device_wait(d, COMPUTE, b->until);
	b->until.n = 0;
	return b;
}

void device_hold_until(Device *d, void *p, Event event)
{
	PoolBlock *b = find_used_block(d->pool, p);
	assert(b && "memory that is used was allocated");
	if (event.queue == COMM && event.n > b->until.n)
		b->until = event;
}

// keep what operations make for the device
/* an object that belongs to the device, and what frees its contents */
typedef struct KeptObject {
	void *at;
	void (*release)(Device *device, void *kept);
} KeptObject;

void *device_keep(Device *d, size_t nbytes,
	void (*release)(Device *device, void *kept))
{
	for (int i = 0; i < d->nkept; i++)
		if (d->kept[i].release == release)
			return d->kept[i].at;
	d->kept = grow(d->kept, d->nkept, sizeof *d->kept);
	d->kept[d->nkept] = (KeptObject){ need(calloc(1, nbytes)), release };
	return d->kept[d->nkept++].at;
}

static void release_kept(Device *d)
{
	while (d->nkept > 0) {
		KeptObject *last = &d->kept[--d->nkept];
		last->release(d, last->at);
		free(last->at);
	}
	free(d->kept);
}

// open and close a device
static void die_of_oom(size_t need, size_t have, const char *what)
{
	die("out of memory: %s needs %zu MiB, %zu MiB are free", what, need >> 20,
		have >> 20);
}

/* the number in cuda:N; 0 for auto, cpu and cuda; -1 for any other name */
static int ordinal_of(const char *name)
{
	char *end = "";
	if (strcmp(name, "auto") == 0 || strcmp(name, "cpu") == 0
		|| strcmp(name, "cuda") == 0)
		return 0;
	if (strncmp(name, "cuda:", 5) != 0 || strspn(name + 5, "0123456789") < 1)
		return -1;
	long n = strtol(name + 5, &end, 10);
	return *end == '\0' && n < 1024 ? (int)n : -1;
}

bool device_named(const char *name)
{
	return ordinal_of(name) >= 0;
}

static const Backend *choose_backend(const char *name, int ordinal)
{
	const char *missing = "this program was built without CUDA";
	if (ordinal < 0)
		usage_error("device '%s' is not one of " DEVICES "|cuda:N", name);
	if (strcmp(name, "cpu") == 0)
		return &cpu_backend;
#ifdef HAVE_CUDA
	missing = cuda_backend.why_missing(ordinal);
	if (missing == NULL)
		return &cuda_backend;
#endif
	if (strncmp(name, "cuda:", 5) == 0)
		usage_error("device '%s': no such GPU: %s", name, missing);
	if (strcmp(name, "cuda") == 0)
		fprintf(stderr, "%s: no GPU: %s; the CPU is used\n", program_name,
			missing);
	return &cpu_backend;
}

static Device *open_on(const Backend *backend, int ordinal, double start_ms)
{
	Device *d = need(calloc(1, sizeof *d));
	d->start_ms = start_ms;
	d->backend = backend;
	d->pool = need(calloc(1, sizeof *d->pool));
	d->state = d->backend->open(ordinal);
	d->limit = d->backend->available(d->state);
	d->open_ms = clock_ms() - d->start_ms;
	d->on_oom = die_of_oom;
	d->outside.name = "";
	d->range = &d->outside;
	return d;
}

Device *device_open(const char *name)
{
	int ordinal = ordinal_of(name);
	double start_ms = clock_ms();
	return open_on(choose_backend(name, ordinal), ordinal, start_ms);
}

Device *device_open_dry(const char *like)
{
	return open_on(strcmp(like, "cpu") == 0 ? &dry_cpu_backend
		: &dry_cuda_backend, 0, clock_ms());
}

static void free_paths(RangePath *inner)
{
	while (inner) {
		RangePath *next = inner->next;
		free_paths(inner->inner);
		free(inner);
		inner = next;
	}
}

void device_close(Device **device)
{
	Device *d = *device;
	assert(d->graphs == 0 && "every graph is forgotten");
	device_flush_deferred(d, "the device is closed");
	for (int queue = 0; queue < NQUEUES; queue++)
		d->backend->synchronize(d->state, queue);
	release_kept(d);
	assert(d->total == 0 && "everything allocated is freed");
	trim_pool(d);
	free(d->pool->blocks);
	free(d->pool);
	free(d->log);
	free_paths(d->outside.inner);
	d->backend->close(d->state);
	free(d);
	*device = NULL;
}

// allocate and free, with bookkeeping
static void log_event(Device *d, const PoolBlock *b, bool allocated)
{
	if (!d->recording)
		return;
	if (d->nlog == LOG_EVENTS) {
		d->unlogged++;
		return;
	}
	d->log = grow(d->log, d->nlog, sizeof *d->log);
	d->log[d->nlog++] = (MemoryEvent){
		.ms = clock_ms() - d->start_ms,
			.nbytes = allocated ? (ptrdiff_t)b->nbytes : -(ptrdiff_t)b->nbytes,
		.category = b->category, .what = b->what, .address = b->at,
		.range = d->range,
	};
}

static void count_in(Device *d, const PoolBlock *b)
{
	d->total += b->nbytes;
	d->active[b->category] += b->nbytes;
	if (d->total > d->total_peak)
		d->total_peak = d->total;
	if (d->active[b->category] > d->peak[b->category])
		d->peak[b->category] = d->active[b->category];
	log_event(d, b, true);
}

void device_lend(Device *d, void *at, size_t nbytes)
{
	assert(!d->loan.lent && !d->capturing && !d->deferral);
	d->loan = (Loan){ .lent = true, .at = at, .nbytes = nbytes };
}

void device_return(Device *d)
{
	d->loan.lent = false;
}

static void *take_lent(Loan *loan, size_t nbytes)
{
	char *at = loan->at + loan->used;
	loan->used += nbytes;
	assert(loan->used <= loan->nbytes && "a pass has told what it needs");
	return at;
}

static void count_out(Device *d, const PoolBlock *b)
{
	log_event(d, b, false);
	d->total -= b->nbytes;
	d->active[b->category] -= b->nbytes;
}

void *device_alloc(Device *d, size_t nbytes, Category category,
	const char *what)
{
	assert(nbytes > 0 && category < NCATEGORIES);
	nbytes = round_up_to_lines(nbytes);
	if (d->loan.lent)
		return take_lent(&d->loan, nbytes);
	PoolBlock *b = take_block(d, nbytes, what);
	b->used = true;
	b->kept |= d->capturing;
	b->category = category;
	b->what = what;
	count_in(d, b);
	return b->at;
}

void device_free(Device *d, void *p)
{
	if (p == NULL || d->loan.lent)
		return;
	PoolBlock *b = find_used_block(d->pool, p);
	if (b == NULL && d->deferral && d->deferral->frees(d->deferral, p, 0))
		return;                     /* there was never any memory */
	assert(b && "freed memory was allocated");
	if (d->deferral && d->deferral->frees(d->deferral, p, b->nbytes))
		return;
	count_out(d, b);
	b->used = false;
	b->kept |= d->capturing;
}

void device_count(Device *d, void *p, size_t nbytes, Category category,
	const char *what, bool allocated)
{
	PoolBlock b = { .at = p, .nbytes = round_up_to_lines(nbytes),
		.category = category, .what = what };
	if (allocated)
		count_in(d, &b);
	else
		count_out(d, &b);
	d->reserved += allocated ? b.nbytes : -b.nbytes;
}

// capture graphs and launch them
bool device_has_graphs(const Device *d)
{
	return d->backend->graph_begin != NULL;
}

void device_graph_begin(Device *d)
{
	device_flush_deferred(d, "a graph begins");
	d->capturing = true;
	d->backend->graph_begin(d->state);
}

void *device_graph_end(Device *d, int *kernels)
{
	device_flush_deferred(d, "a graph ends");
	d->capturing = false;
	void *graph = d->backend->graph_end(d->state, kernels);
	d->graphs += graph != NULL;
	return graph;
}

void *device_graph_capture(Device *d, void (*run)(void *arg), void *arg,
	int *kernels)
{
	if (!device_has_graphs(d))
		return NULL;
	device_graph_begin(d);
	run(arg);
	return device_graph_end(d, kernels);
}

void device_graph_launch(Device *d, void *graph)
{
	device_flush_deferred(d, "a graph is launched");
	d->backend->graph_launch(d->state, graph);
}

void device_graph_destroy(Device *d, void **graph)
{
	if (*graph == NULL)
		return;
	d->backend->graph_destroy(d->state, *graph);
	*graph = NULL;
	if (--d->graphs == 0)
		for (size_t i = 0; i < d->pool->n; i++)
			d->pool->blocks[i].kept = false;
}

// reset peaks, switch the log, push and pop ranges
void device_blocks(const Device *d,
	void (*visit)(void *arg, const DeviceBlock *block), void *arg)
{
	for (size_t i = 0; i < d->pool->n; i++) {
		const PoolBlock *b = &d->pool->blocks[i];
		DeviceBlock block = { b->at, b->nbytes, b->what, b->used };
		visit(arg, &block);
	}
}

void device_reset_peak(Device *d)
{
	memcpy(d->peak, d->active, sizeof d->peak);
	d->total_peak = d->total;
}

void device_log_memory(Device *d, bool on)
{
	d->recording = on;
}

static void announce_range(Device *d, const char *name)
{
	if (d->backend->range)
		d->backend->range(d->state, name);
	if (d->watch)
		d->watch(d->watcher, name);
}

bool device_range_push(Device *d, const char *name)
{
	RangePath *in = d->range->inner;
	while (in && strcmp(in->name, name) != 0)
		in = in->next;
	if (in == NULL) {
		in = need(malloc(sizeof *in));
		*in = (RangePath){ .name = name, .outer = d->range,
			.next = d->range->inner };
		d->range->inner = in;
	}
	d->range = in;
	announce_range(d, name);
	return true;
}

bool device_range_pop(Device *d)
{
	assert(d->range->outer && "a range has begun");
	d->range = d->range->outer;
	announce_range(d, NULL);
	return false;
}
