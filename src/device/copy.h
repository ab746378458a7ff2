/* copy.h: copies between host and device, and within a device */
#ifndef DEVICE_COPY_H
#define DEVICE_COPY_H

#include "device/state.h"

/* Copy on the compute queue; the host waits until the copy is done. */
void    device_upload(Device *device, void *on_device, const void *on_host,
	size_t nbytes);
void    device_download(Device *device, void *on_host, const void *on_device,
	size_t nbytes);
/* queues a copy within the device, or between it and memory that
 * device_host_alloc gave */
void    device_copy(Device *device, Queue queue, void *to, const void *from,
	size_t nbytes);
/* memory of the host that queued copies may use; dies when there is none */
void   *device_host_alloc(Device *device, size_t nbytes);
/* p may be NULL */
void    device_host_free(Device *device, void *p);

#endif
