/* outside_arrays.h: arrays of callers, beside arrays as a device stores them */
#ifndef DIST_OUTSIDE_ARRAYS_H
#define DIST_OUTSIDE_ARRAYS_H

#include "ops/array.h"

/* number formats of callers' arrays */
enum { OUTSIDE_FP32, OUTSIDE_BF16, OUTSIDE_FP16 };

/* does the device store numbers of a format as callers do? Bits of fp16 that
 * are only gathered count as bf16 */
bool outside_alike(const Device *d, int32_t type);
/* These queue a copy of n numbers; x is an array of that format, in the memory
 * of the device. read: to = x; write: x = from / divisor */
void outside_read(Device *d, Array to, const void *x, size_t n, int32_t type);
void outside_write(Device *d, void *x, Array from, size_t n, int32_t type,
	int divisor);
/* the same for bits that are gathered, and are no numbers */
void outside_read_bits(Device *d, Array to, const void *x, size_t n,
	int32_t type);
void outside_write_bits(Device *d, void *x, Array from, size_t n, int32_t type);

#endif
