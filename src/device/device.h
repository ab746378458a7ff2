/* device.h: memory with bookkeeping, queues of work and a clock of one device */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include "device/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { MEM_PARAMETER, MEM_GRADIENT, MEM_OPTIMIZER, MEM_ACTIVATION,
	MEM_TEMPORARY, NCATEGORIES } Category;
extern const char *const category_names[NCATEGORIES];

// declare the log
/* a range inside others; equal nestings are one path, which lives as long as the
 * device */
typedef struct RangePath {
	const char *name;                       /* "" outside of all */
	struct RangePath *outer;                /* NULL there */
	struct RangePath *inner, *next;         /* the first inside; beside it */
} RangePath;

typedef struct MemoryEvent {
	double ms;              /* since the device was opened */
	ptrdiff_t nbytes;       /* > 0 allocated, < 0 freed */
	Category category;
	const char *what;
	const RangePath *range;
	void *address;
} MemoryEvent;
/* that a log holds: a million blocks allocated and freed */
enum { LOG_EVENTS = 1 << 21 };

// declare events
/* a point in the work of a queue; n = 0: it has been reached */
typedef struct Event {
	Queue queue;
	uint64_t n;
} Event;

// declare who defers work
struct Elementary;
struct Ops;
/* records operations of the compute queue in place of queueing them */
typedef struct Deferral {
	/* queues all that is recorded; why: what comes next, for explanations */
	void  (*flush)(struct Deferral *self, const char *why);
	/* the caller frees memory at p; true: the deferral frees it later
	 * instead */
	bool  (*frees)(struct Deferral *self, void *p, size_t nbytes);
	/* ops/elementary.h: records one more operation; returns the address of
	 * scratch memory that may never be made; the operations that ops_for
	 * hands out while work is deferred */
	void  (*take)(struct Deferral *self, const struct Elementary *e);
	void *(*scratch)(struct Deferral *self, size_t nbytes, const char *what);
	const struct Ops *ops;
} Deferral;
typedef struct Device {
	const Backend *backend;
	void *state;                                         /* the backend's */
	/* bytes that may be reserved: those that the backend had when the device
	 * was opened, unless a program sets less */
	size_t limit;
	/* bytes in use, by category */
	size_t active[NCATEGORIES], peak[NCATEGORIES];
	size_t total, total_peak;                            /* over all categories */
	/* bytes of all blocks of the pool, in use or free, and of what libraries
	 * have allocated */
	size_t reserved;
	/* ms that the host has spent on opening the device, in the backend's alloc,
	 * on having libraries choose algorithms, and in calls that load
	 * libraries */
	double open_ms, alloc_ms, choice_ms, library_ms;
	void (*on_oom)(size_t need, size_t have, const char *what);
	/* events while recording; those for which the log had no room */
	MemoryEvent *log;
	size_t nlog, unlogged;
	/* blocks, in use and free */
	struct Pool *pool;
	/* what device_keep made, the first first */
	struct KeptObject *kept;
	int nkept;
	// declare what watches and steers the work
	RangePath outside, *range;
	/* a watcher, told where a range begins (its name) and ends (NULL); NULL: there
	 * is none */
	void (*watch)(void *watcher, const char *name);
	void *watcher;
	bool recording;
	/* work is being captured; graphs that exist */
	bool capturing;
	int graphs;
	/* multiprocessors of a GPU that matmuls queued from now on leave free */
	int spare_sms;
	/* algorithms of a GPU's matmuls; what the list lacks is timed and added.
	 * NULL: those that the library proposes first. Set before the first matmul */
	struct GemmChoices *gemms;
	Deferral *deferral;                /* NULL: all work has been queued */
	double start_ms;
} Device;

// declare how a device is opened
#define DEVICES "auto|cpu|cuda"
/* Opens one of DEVICES, or cuda:N, the GPU of that number; cuda is the first
 * GPU. auto: a GPU if there is one. cuda where there is none: prints why, and
 * opens the CPU. An unknown name, or a number that no GPU has: exit 2. */
Device *device_open(const char *name);
/* would device_open accept the name on some machine? */
bool    device_named(const char *name);
/* waits for all work, asserts that nothing is in use, frees the device and sets
 * *device to NULL */
void    device_close(Device **device);

// declare allocation, copies and the clock
/* Returns nbytes > 0 of memory, aligned to 64 bytes, with arbitrary contents;
 * what: a literal that names the tensor. When it does not fit, calls
 * device->on_oom, which must not return. */
void   *device_alloc(Device *device, size_t nbytes, Category category,
	const char *what);
/* gives the block back to the pool; p may be NULL */
void    device_free(Device *device, void *p);
/* Has the pool, or gets now, a free block of nbytes? If so the next
 * device_alloc of that size succeeds. */
bool    device_reserve(Device *device, size_t nbytes);
/* counts nbytes at p that a library has allocated by itself (allocated), or has
 * freed (not allocated) */
void    device_count(Device *device, void *p, size_t nbytes, Category category,
	const char *what, bool allocated);
/* Copy on the compute queue; the host waits until the copy is done. */
void    device_upload(Device *device, void *on_device, const void *on_host,
	size_t nbytes);
void    device_download(Device *device, void *on_host, const void *on_device,
	size_t nbytes);
/* waits for the work of all queues; returns ms since the device was opened */
double  device_now_ms(Device *device);
/* device_stamp notes the time at which the work so far of the queue is done, as
 * number `which` < NSTAMPS. device_stamped_ms returns the ms between two
 * stamps, and waits for `to`, the later one. */
void    device_stamp(Device *device, Queue queue, int which);
double  device_stamped_ms(Device *device, int from, int to);
/* Returns nbytes that belong to the device, zero when they are made, which the
 * first call with this `release` does; later calls with it return the same.
 * Closing the device calls release(device, kept), the latest first, and frees
 * them. */
void   *device_keep(Device *device, size_t nbytes,
	void (*release)(Device *device, void *kept));

// declare queues
/* Returns the event that is reached when the queue has done all that it was
 * given so far. Not while work is captured; nor are device_wait, device_call
 * and device_copy. */
Event   device_event(Device *device, Queue queue);
/* What the queue is given from now on waits for the event. The host does not
 * wait, except for a CPU's compute queue, whose work it does itself. */
void    device_wait(Device *device, Queue queue, Event event);
/* has the event been reached? Waits for nothing */
bool    device_reached(Device *device, Event event);
/* queues a function of the host, which must not use the device */
void    device_call(Device *device, Queue queue, void (*work)(void *arg),
	void *arg);
/* queues a copy within the device, or between it and memory that
 * device_host_alloc gave */
void    device_copy(Device *device, Queue queue, void *to, const void *from,
	size_t nbytes);
/* memory of the host that queued copies may use; dies when there is none */
void   *device_host_alloc(Device *device, size_t nbytes);
/* p may be NULL */
void    device_host_free(Device *device, void *p);
/* p, which device_alloc returned, is in use until the event is reached, even if
 * device_free is called before */
void    device_hold_until(Device *device, void *p, Event event);
/* Queues the operations that have been deferred; why: a literal that says what
 * comes next. Copies, calls, events, stamps, graphs and the clock do so first;
 * device_wait does not. */
void    device_flush_deferred(Device *device, const char *why);

// declare graphs
/* Work between begin and end is captured and not done. Meanwhile nothing may be
 * asked of the device but memory, ranges and stamps. device_graph_end returns
 * the graph, and in *kernels how many kernels it has; NULL: there was no
 * work. */
bool    device_has_graphs(const Device *device);
void    device_graph_begin(Device *device);
void   *device_graph_end(Device *device, int *kernels);
/* Returns a graph of what run(arg) queues, which is not done. NULL: it queued
 * nothing, or the device has no graphs; in that case run is not called. */
void   *device_graph_capture(Device *device, void (*run)(void *arg), void *arg,
	int *kernels);
/* queues the graph's work on the compute queue */
void    device_graph_launch(Device *device, void *graph);
/* waits, frees *graph and sets it to NULL; *graph may be NULL */
void    device_graph_destroy(Device *device, void **graph);

// declare what is known of memory and ranges
/* peaks start anew from what is in use now */
void    device_reset_peak(Device *device);
typedef struct DeviceBlock {
	void *at;
	size_t nbytes;
	const char *what;       /* the tensor that it was last allocated for */
	bool used;              /* false: it is free, and stays in the pool */
} DeviceBlock;
/* calls visit(arg, block) for each block of the pool */
void    device_blocks(const Device *device,
	void (*visit)(void *arg, const DeviceBlock *block), void *arg);
/* switches the log of allocations and releases on or off */
void    device_log_memory(Device *device, bool on);
/* RANGE(device, "name") { ... } names a part of the program for the log of
 * memory, for profiles and for tools from outside. The name is a literal. The
 * block must not be left by return, break or goto. */
#define RANGE(device, name)                                          \
	for (bool inside_range = device_range_push((device), (name));    \
		inside_range; inside_range = device_range_pop(device))
bool    device_range_push(Device *device, const char *name);  /* gives true */
bool    device_range_pop(Device *device);                     /* gives false */

#ifdef __cplusplus
}
#endif

#endif
