/* array.h: arrays in a device's memory */
#ifndef OPS_ARRAY_H
#define OPS_ARRAY_H

#include "ops/types.h"

/* contents arbitrary; device_free(device, a.at) frees it */
Array array_new(Device *device, size_t n, Type type, Category category,
	const char *what);
/* the array that starts at element `offset` */
Array array_part(const Device *device, Array a, size_t offset);
/* waits for the work that makes a */
void  array_read(Device *device, real *host, Array a, size_t n);
/* values are rounded to a.type */
void  array_write(Device *device, Array a, const real *host, size_t n);

#endif
