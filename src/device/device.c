#define _GNU_SOURCE
#include "device/device.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "device/cpu.h"
#ifdef HAVE_CUDA
#include "device/cuda/cuda.h"
#endif

const char *const category_names[NCATEGORIES] = { "parameter", "gradient",
	"optimizer", "activation", "temporary" };

static double clock_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

typedef struct Block {
	void *at;
	size_t nbytes;
	const char *what;
	Category category;
	bool used;
	bool kept;           /* a recorded graph contains its address */
} Block;

typedef struct Pool {
	Block *blocks;
	size_t n, capacity;
} Pool;

static Block *find_free(Device *d, size_t nbytes)
{
	for (size_t i = d->pool->n; i-- > 0;) {
		Block *b = &d->pool->blocks[i];
		if (!b->used && b->nbytes == nbytes && (!b->kept || d->capturing))
			return b;
	}
	return NULL;
}

static Block *find_used(Pool *pool, const void *p)
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
		d->backend->free(pool->blocks[i].at);
		d->reserved -= pool->blocks[i].nbytes;
	}
	pool->n = kept;
}

static void *take_memory(Device *d, size_t nbytes)
{
	if (d->reserved + nbytes > d->limit)
		return NULL;
	double start = clock_ms();
	void *at = d->backend->alloc(nbytes);
	d->alloc_ms += clock_ms() - start;
	return at;
}

static Block *add_block(Device *d, size_t nbytes, const char *what)
{
	Pool *pool = d->pool;
	void *at = take_memory(d, nbytes);
	if (at == NULL) {
		trim_pool(d);           /* pages may be larger than blocks */
		at = take_memory(d, nbytes);
	}
	if (at == NULL)
		d->on_oom(nbytes, d->limit - d->reserved, what);
	if (pool->n == pool->capacity) {
		pool->capacity = pool->capacity ? 2 * pool->capacity : 256;
		pool->blocks = need(realloc(pool->blocks,
			pool->capacity * sizeof *pool->blocks));
	}
	d->reserved += nbytes;
	pool->blocks[pool->n] = (Block){ .at = at, .nbytes = nbytes };
	return &pool->blocks[pool->n++];
}
static void die_of_oom(size_t need, size_t have, const char *what)
{
	die("out of memory: %s needs %zu MiB, %zu MiB are free", what, need >> 20,
		have >> 20);
}

#ifndef HAVE_CUDA
static const char *cuda_missing(void)
{
	return "this program was built without CUDA";
}
#endif

static const Backend *choose_backend(const char *name)
{
	bool wanted = strcmp(name, "cuda") == 0;
	if (!wanted && strcmp(name, "auto") != 0 && strcmp(name, "cpu") != 0)
		usage_error("device '%s' is not one of " DEVICES, name);
	const char *missing = strcmp(name, "cpu") == 0 ? "" : cuda_missing();
#ifdef HAVE_CUDA
	if (missing == NULL)
		return &cuda_backend;
#endif
	if (wanted)
		fprintf(stderr, "%s: no GPU: %s; the CPU is used\n", program_name,
			missing);
	return &cpu_backend;
}

Device *device_open(const char *name)
{
	Device *d = need(calloc(1, sizeof *d));
	d->start_ms = clock_ms();
	d->backend = choose_backend(name);
	d->pool = need(calloc(1, sizeof *d->pool));
	if (d->backend->open)
		d->backend->open(d);
	d->limit = d->backend->available();
	d->open_ms = clock_ms() - d->start_ms;
	d->on_oom = die_of_oom;
	d->outside.name = "";
	d->range = &d->outside;
	return d;
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
	if (d->backend->close)
		d->backend->close();
	assert(d->total == 0 && "everything allocated is freed");
	trim_pool(d);
	free(d->pool->blocks);
	free(d->pool);
	free(d->log);
	free_paths(d->outside.inner);
	free(d);
	*device = NULL;
}
static void log_event(Device *d, const Block *b, bool allocated)
{
	if (!d->recording)
		return;
	if (d->nlog == LOG_EVENTS) {
		d->unlogged++;
		return;
	}
	if ((d->nlog & (d->nlog - 1)) == 0)
		d->log = need(realloc(d->log, (d->nlog ? 2 * d->nlog
			: 1) * sizeof *d->log));
	d->log[d->nlog++] = (MemoryEvent){
		.ms = clock_ms() - d->start_ms,
			.nbytes = allocated ? (ptrdiff_t)b->nbytes : -(ptrdiff_t)b->nbytes,
		.category = b->category, .what = b->what, .address = b->at,
		.range = d->range,
	};
}

void *device_alloc(Device *d, size_t nbytes, Category category,
	const char *what)
{
	assert(nbytes > 0 && category < NCATEGORIES);
	nbytes = (nbytes + 63) & ~(size_t)63;
	Block *b = find_free(d, nbytes);
	if (b == NULL)
		b = add_block(d, nbytes, what);
	b->used = true;
	b->kept |= d->capturing;
	b->category = category;
	b->what = what;
	d->total += nbytes;
	d->active[category] += nbytes;
	if (d->total > d->total_peak)
		d->total_peak = d->total;
	if (d->active[category] > d->peak[category])
		d->peak[category] = d->active[category];
	log_event(d, b, true);
	return b->at;
}

void device_free(Device *d, void *p)
{
	if (p == NULL)
		return;
	Block *b = find_used(d->pool, p);
	assert(b && "freed memory was allocated");
	log_event(d, b, false);
	d->total -= b->nbytes;
	d->active[b->category] -= b->nbytes;
	b->used = false;
	b->kept |= d->capturing;
}
void device_upload(Device *d, void *on_device, const void *on_host,
	size_t nbytes)
{
	d->backend->copy(on_device, on_host, nbytes);
}

void device_download(Device *d, void *on_host, const void *on_device,
	size_t nbytes)
{
	d->backend->copy(on_host, on_device, nbytes);
}

double device_now_ms(Device *d)
{
	d->backend->synchronize();
	return clock_ms() - d->start_ms;
}

void device_event_record(Device *d, int which)
{
	assert(which >= 0 && which < NEVENTS);
	d->backend->event_record(which);
}

double device_event_elapsed_ms(Device *d, int from, int to)
{
	return d->backend->event_elapsed_ms(from, to);
}
void *device_graph_capture(Device *d, void (*run)(void *arg), void *arg,
	int *kernels)
{
	if (d->backend->graph_begin == NULL)
		return NULL;
	d->capturing = true;
	d->backend->graph_begin();
	run(arg);
	d->capturing = false;
	d->graphs++;
	return d->backend->graph_end(kernels);
}

void device_graph_launch(Device *d, void *graph)
{
	d->backend->graph_launch(graph);
}

void device_graph_destroy(Device *d, void **graph)
{
	if (*graph == NULL)
		return;
	d->backend->graph_destroy(*graph);
	*graph = NULL;
	if (--d->graphs == 0)
		for (size_t i = 0; i < d->pool->n; i++)
			d->pool->blocks[i].kept = false;
}
void device_blocks(const Device *d, void (*see)(void *arg,
	const DeviceBlock *block), void *arg)
{
	for (size_t i = 0; i < d->pool->n; i++) {
		const Block *b = &d->pool->blocks[i];
		DeviceBlock block = { b->at, b->nbytes, b->what, b->used };
		see(arg, &block);
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

static void tell(Device *d, const char *name)
{
	if (d->backend->range)
		d->backend->range(name);
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
	tell(d, name);
	return true;
}

bool device_range_pop(Device *d)
{
	assert(d->range->outer && "a range has begun");
	d->range = d->range->outer;
	tell(d, NULL);
	return false;
}
