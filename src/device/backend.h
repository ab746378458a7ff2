/* backend.h: what differs between a CPU and a GPU */
#ifndef DEVICE_BACKEND_H
#define DEVICE_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/number.h"

/* each does its work in order; they run side by side */
typedef enum { COMPUTE, COMM, NQUEUES } Queue;
enum { NSTAMPS = 8192 };

typedef struct Backend {
	const char *name;
	/* NULL when there is such a device, else why not */
	const char *(*missing)(int ordinal);
	void  *(*open)(int ordinal);
	void   (*close)(void *state);
	// declare what a backend says of itself
	/* model and size, one line; libraries with versions; bytes of memory */
	const char *(*describe)(void *state);
	const char *(*libraries)(void *state);
	/* its place on the PCI bus, as its driver's tools know it; NULL: none */
	const char *(*bus)(void *state);
	size_t (*memory)(void *state);
	/* tells tools from outside where a range begins (its name) or ends (NULL);
	 * NULL: there are none */
	void   (*range)(void *state, const char *name);
	// declare what a backend does with memory
	/* bytes that can be allocated now; bytes of an element as stored */
	size_t (*available)(void *state);
	size_t (*width)(Type type);
	/* NULL when there is no memory */
	void  *(*alloc)(void *state, size_t nbytes);
	void   (*free)(void *state, void *p);
	/* memory of the host that queued copies read and write when they run; NULL when
	 * there is none */
	void  *(*host_alloc)(void *state, size_t nbytes);
	void   (*host_free)(void *state, void *p);
	/* queues a copy from host to device, back, or within the device */
	void   (*copy)(void *state, Queue queue, void *to, const void *from,
		size_t nbytes);
	// declare what a backend does with queues
	/* queues a function of the host, which must not use the device */
	void   (*call)(void *state, Queue queue, void (*work)(void *arg), void *arg);
	/* the host waits for all that is queued */
	void   (*synchronize)(void *state, Queue queue);
	/* a number for the point that the queue has been filled to; 0: all work was
	 * done when it was queued */
	uint64_t (*event)(void *state, Queue queue);
	/* `queue` takes up what comes next only when `of` has reached event n */
	void   (*wait)(void *state, Queue queue, Queue of, uint64_t n);
	bool   (*reached)(void *state, Queue of, uint64_t n);
	/* notes the time at which the work before it is done; ms between two */
	void   (*stamp)(void *state, Queue queue, int which);
	double (*stamped_ms)(void *state, int from, int to);
	// declare what a backend does with graphs
	/* compute work after graph_begin is captured, not done; graph_end returns a
	 * graph of it and how many kernels it has, NULL if there is none. The functions
	 * are NULL where a device cannot */
	void   (*graph_begin)(void *state);
	void  *(*graph_end)(void *state, int *kernels);
	void   (*graph_launch)(void *state, void *graph);
	void   (*graph_destroy)(void *state, void *graph);
} Backend;

#endif
