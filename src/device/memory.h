/* memory.h: memory of a device, by the tensor */
#ifndef DEVICE_MEMORY_H
#define DEVICE_MEMORY_H

#include "device/queue.h"
#include "device/state.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns nbytes > 0 of memory, aligned to 64 bytes, with arbitrary contents;
 * what: a literal that names the tensor. When it does not fit, calls
 * device->on_oom, which must not return. */
void   *device_alloc(Device *device, size_t nbytes, Category category,
	const char *what);
/* gives the block back to the pool; p may be NULL */
void    device_free(Device *device, void *p);
/* Has the pool, or gets now, a free block of nbytes? If so the next
 * device_alloc of that size succeeds. */
bool    device_reserve(Device *device, size_t nbytes);
/* from now on device_alloc takes memory from nbytes at `at`, one block behind the
 * other, and device_free does nothing, until device_return. The pool, which work
 * in other streams may use, is left alone */
void    device_lend(Device *device, void *at, size_t nbytes);
void    device_return(Device *device);
/* counts nbytes at p that a library has allocated by itself (allocated), or has
 * freed (not allocated) */
void    device_count(Device *device, void *p, size_t nbytes, Category category,
	const char *what, bool allocated);
/* Returns nbytes that belong to the device, zero when they are made, which the
 * first call with this `release` does; later calls with it return the same.
 * Closing the device calls release(device, kept), the latest first, and frees
 * them. */
void   *device_keep(Device *device, size_t nbytes,
	void (*release)(Device *device, void *kept));
/* p, which device_alloc returned, is in use until the event is reached, even if
 * device_free is called before */
void    device_hold_until(Device *device, void *p, Event event);

#ifdef __cplusplus
}
#endif

#endif
