/* range.h: named parts of a program */
#ifndef DEVICE_RANGE_H
#define DEVICE_RANGE_H

#include "device/state.h"

/* RANGE(device, "name") { ... } names a part of the program for the log of
 * memory, for profiles and for tools from outside. The name is a literal. The
 * block must not be left by return, break or goto. */
#define RANGE(device, name)                                          \
	for (bool inside_range = device_range_push((device), (name));    \
		inside_range; inside_range = device_range_pop(device))
bool    device_range_push(Device *device, const char *name);  /* gives true */
bool    device_range_pop(Device *device);                     /* gives false */

#endif
