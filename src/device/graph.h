/* graph.h: work that is captured once and launched many times */
#ifndef DEVICE_GRAPH_H
#define DEVICE_GRAPH_H

#include "device/state.h"

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

#endif
