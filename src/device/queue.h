/* queue.h: work of a device in two queues, ordered by events */
#ifndef DEVICE_QUEUE_H
#define DEVICE_QUEUE_H

#include "device/state.h"

/* a point in the work of a queue; n = 0: it has been reached */
typedef struct Event {
	Queue queue;
	uint64_t n;
} Event;

// declare what queues do
/* Returns the event that the queue reaches with all that it was given so far. Not
 * while work is captured; nor are device_wait, device_call and device_copy. */
Event   device_event(Device *device, Queue queue);
/* What the queue is given from now on waits for the event. The host does not
 * wait, except for a CPU's compute queue, whose work it does itself. */
void    device_wait(Device *device, Queue queue, Event event);
/* has the event been reached? Waits for nothing */
bool    device_reached(Device *device, Event event);
/* queues a function of the host, which must not use the device */
void    device_call(Device *device, Queue queue, void (*work)(void *arg),
	void *arg);
/* Queues the operations that have been deferred; why: a literal that says what
 * comes next. Copies, calls, events, stamps, graphs and the clock do so first;
 * device_wait does not. */
void    device_flush_deferred(Device *device, const char *why);

#endif
