/* array.h: arrays in a device's memory */
#ifndef OPS_ARRAY_H
#define OPS_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/number.h"
#include "device/device.h"

#ifdef REAL_IS_DOUBLE
#define TYPE_REAL FP64
#else
#define TYPE_REAL FP32
#endif

typedef struct Array {
	void *at;      /* in the device's memory; on the CPU: real[] */
	Type type;     /* the format to which the values are rounded */
} Array;

/* n elements with arbitrary contents; device_free(device, a.at) frees them.
 * what: a literal that names the tensor */
Array array_new(Device *device, size_t n, Type type, Category category,
	const char *what);
/* the part of a that starts at element `offset`; it has a's memory */
Array array_part(const Device *device, Array a, size_t offset);
/* copies n elements to the host, after the work that makes them */
void  array_read(Device *device, real *host, Array a, size_t n);
/* copies n values to the device, each rounded to a.type */
void  array_write(Device *device, Array a, const real *host, size_t n);
/* the same for values that `tabulate` writes to the host's memory, given arg; on
 * a dry device it is not called */
void  array_tabulate(Device *device, Array a, size_t n,
	void (*tabulate)(const void *arg, real *host, size_t n), const void *arg);

#endif
