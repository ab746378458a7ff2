/* stamp.h: the times of a device */
#ifndef DEVICE_STAMP_H
#define DEVICE_STAMP_H

#include "device/state.h"

/* waits for the work of all queues; returns ms since the device was opened */
double  device_now_ms(Device *device);
/* device_stamp notes the time at which the work so far of the queue is done, as
 * number `which` < NSTAMPS. device_stamped_ms returns the ms between two
 * stamps, and waits for `to`, the later one. */
void    device_stamp(Device *device, Queue queue, int which);
double  device_stamped_ms(Device *device, int from, int to);

#endif
