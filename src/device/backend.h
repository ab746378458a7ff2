/* backend.h: what differs between a CPU and a GPU */
#ifndef DEVICE_BACKEND_H
#define DEVICE_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/number.h"

/* A queue does its work in order; the two run side by side. */
typedef enum { COMPUTE, COMM, NQUEUES } Queue;
enum { NSTAMPS = 8192 };

typedef struct Backend {
	const char *name;
	/* allocations count, and there is neither memory nor work behind them */
	bool dry;
	/* NULL if there is a device of this number, else a text that says why
	 * not */
	const char *(*why_missing)(int ordinal);
	/* the state of an open device, the first argument of what follows */
	void  *(*open)(int ordinal);
	void   (*close)(void *state);
	// declare what a backend says of itself
	/* one line with the model and its size; one line with the libraries and their
	 * versions */
	const char *(*describe)(void *state);
	const char *(*libraries)(void *state);
	/* the address on the PCI bus as the driver's tools write it; NULL: this
	 * function is missing where a device has none */
	const char *(*bus)(void *state);
	/* all memory of the device, in bytes */
	size_t (*memory)(void *state);
	/* tells tools from outside where a range begins (name) or ends (name NULL);
	 * NULL: there are no such tools */
	void   (*range)(void *state, const char *name);
	// declare what a backend does with memory
	/* available: bytes that can be allocated now; width: bytes of an element of
	 * this type as the device stores it */
	size_t (*available)(void *state);
	size_t (*width)(Type type);
	/* returns NULL when there is no memory */
	void  *(*alloc)(void *state, size_t nbytes);
	void   (*free)(void *state, void *p);
	/* memory of the host that queued copies may read and write when they run; NULL
	 * when there is none */
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
	/* returns the number of the point that the queue has been filled to; 0: all its
	 * work was done when it was queued */
	uint64_t (*event)(void *state, Queue queue);
	/* `queue` starts what it is given from now on only when queue `of` has reached
	 * event n; reached: has it? */
	void   (*wait)(void *state, Queue queue, Queue of, uint64_t n);
	bool   (*reached)(void *state, Queue of, uint64_t n);
	/* stamp notes the time at which the work so far is done; stamped_ms returns the
	 * ms between two stamps */
	void   (*stamp)(void *state, Queue queue, int which);
	double (*stamped_ms)(void *state, int from, int to);
	// declare what a backend does with graphs
	/* Compute work after graph_begin is captured and not done; graph_end returns a
	 * graph of it and the number of its kernels, NULL if there was none. The
	 * functions are NULL where a device has no graphs. */
	void   (*graph_begin)(void *state);
	void  *(*graph_end)(void *state, int *kernels);
	void   (*graph_launch)(void *state, void *graph);
	void   (*graph_destroy)(void *state, void *graph);
} Backend;

#endif
