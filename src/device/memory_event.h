/* memory_event.h: allocations and releases, with what they are for */
#ifndef DEVICE_MEMORY_EVENT_H
#define DEVICE_MEMORY_EVENT_H

#include <stddef.h>

#include "device/category.h"

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
/* the most events of a log: a million blocks allocated and freed */
enum { LOG_EVENTS = 1 << 21 };

#endif
