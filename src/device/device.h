/* device.h: memory with bookkeeping, copies and a clock, for one device */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/number.h"

typedef enum { MEM_PARAMETER, MEM_GRADIENT, MEM_OPTIMIZER, MEM_ACTIVATION,
	MEM_TEMPORARY, NCATEGORIES } Category;
extern const char *const category_names[NCATEGORIES];

struct Device;
typedef struct Backend {
	const char *name;
	/* model and size, one line; libraries with versions; bytes of memory */
	const char *(*describe)(void);
	const char *(*libraries)(void);
	size_t (*memory)(void);
	/* before and after everything else; NULL: nothing to do */
	void   (*open)(struct Device *device);
	void   (*close)(void);
	/* bytes that can be allocated now; bytes of an element as stored */
	size_t (*available)(void);
	size_t (*width)(Type type);
	/* NULL when there is no memory */
	void  *(*alloc)(size_t nbytes);
	void   (*free)(void *p);
	/* host to device or back; waits for earlier work and for itself */
	void   (*copy)(void *to, const void *from, size_t nbytes);
	void   (*synchronize)(void);
	/* notes the time at which the work before it is done; ms between two */
	void   (*event_record)(int which);
	double (*event_elapsed_ms)(int from, int to);
	/* tells tools from outside where a range begins (its name) or ends (NULL);
	 * NULL: there are none */
	void   (*range)(const char *name);
	/* work after graph_begin is captured, not done; graph_end returns a graph
	 * of it and how many kernels it has; NULL where a device cannot */
	void   (*graph_begin)(void);
	void  *(*graph_end)(int *kernels);
	void   (*graph_launch)(void *graph);
	void   (*graph_destroy)(void *graph);
} Backend;
enum { NEVENTS = 8192 };
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
typedef struct Device {
	const Backend *backend;
	/* bytes that may be reserved */
	size_t limit;
	/* bytes in use, by category */
	size_t active[NCATEGORIES], peak[NCATEGORIES];
	size_t total, total_peak;                            /* bytes in use */
	/* in use or kept in the pool */
	size_t reserved;
	/* spent by the host so far: on opening the device, in the backend's alloc,
	 * on having libraries choose algorithms, and in calls that load them */
	double open_ms, alloc_ms, choice_ms, library_ms;
	void (*on_oom)(size_t need, size_t have, const char *what);
	/* events while recording; those for which the log had no room */
	MemoryEvent *log;
	size_t nlog, unlogged;
	/* blocks, in use and free */
	struct Pool *pool;
	RangePath outside, *range;
	/* is told where a range begins (its name) and ends (NULL) */
	void (*watch)(void *watcher, const char *name);
	void *watcher;
	bool recording;
	/* work is being captured; graphs that exist */
	bool capturing;
	int graphs;
	double start_ms;
} Device;

#define DEVICES "auto|cpu|cuda"
/* auto: a GPU if there is one. cuda where there is none: says why, and opens the
 * cpu. An unknown name exits 2 */
Device *device_open(const char *name);
void    device_close(Device **device);

/* nbytes > 0 of memory, 64-byte aligned, contents arbitrary; what: a literal
 * naming the tensor.
 * When it does not fit, calls device->on_oom, which does not return */
void   *device_alloc(Device *device, size_t nbytes, Category category,
	const char *what);
void    device_free(Device *device, void *p);

void    device_upload(Device *device, void *on_device, const void *on_host,
	size_t nbytes);
void    device_download(Device *device, void *on_host, const void *on_device,
	size_t nbytes);
/* waits for all work, then reads the clock */
double  device_now_ms(Device *device);
/* which < NEVENTS; device_event_elapsed_ms waits for the later event */
void    device_event_record(Device *device, int which);
double  device_event_elapsed_ms(Device *device, int from, int to);

/* captures what run(arg) queues, which is not done; NULL: the device cannot */
void   *device_graph_capture(Device *device, void (*run)(void *arg), void *arg,
	int *kernels);
void    device_graph_launch(Device *device, void *graph);
void    device_graph_destroy(Device *device, void **graph);

/* peaks restart from what is active now */
void    device_reset_peak(Device *device);
typedef struct DeviceBlock {
	void *at;
	size_t nbytes;
	const char *what;       /* it was last given out for */
	bool used;              /* else it is free */
} DeviceBlock;
/* calls see(arg, block) for each block of the pool */
void    device_blocks(const Device *device,
	void (*see)(void *arg, const DeviceBlock *block), void *arg);
void    device_log_memory(Device *device, bool on);
/* RANGE(device, "name") { ... }: a named part of the program, for the log of the
 * memory, profiles and tools from outside; the name is a literal. The block is
 * not left by return, break or goto */
#define RANGE(device, name)                                          \
	for (bool inside_range = device_range_push((device), (name));    \
		inside_range; inside_range = device_range_pop(device))
bool    device_range_push(Device *device, const char *name);   /* true */
bool    device_range_pop(Device *device);                      /* false */

#endif
