#include "device/queue.h"

#include <assert.h>

#include "base/clock.h"
#include "base/error.h"
#include "device/copy.h"
#include "device/stamp.h"

// order the work of queues
void device_flush_deferred(Device *d, const char *why)
{
	if (d->deferral)
		d->deferral->flush(d->deferral, why);
}

Event device_event(Device *d, Queue queue)
{
	assert(!d->capturing);
	device_flush_deferred(d, "an event follows");
	return (Event){ queue, d->backend->event(d->state, queue) };
}

void device_wait(Device *d, Queue queue, Event event)
{
	assert(!d->capturing);
	if (event.n == 0 || event.queue == queue)
		return;
	bool watched = d->watch_wait && queue == COMPUTE;
	if (watched)
		d->watch_wait(d->wait_watcher, true);
	d->backend->wait(d->state, queue, event.queue, event.n);
	if (watched)
		d->watch_wait(d->wait_watcher, false);
}

bool device_reached(Device *d, Event event)
{
	return event.n == 0 || d->backend->reached(d->state, event.queue, event.n);
}

// queue host functions and copies
void device_call(Device *d, Queue queue, void (*work)(void *arg), void *arg)
{
	assert(!d->capturing);
	device_flush_deferred(d, "work of the host follows");
	d->backend->call(d->state, queue, work, arg);
}

void device_copy(Device *d, Queue queue, void *to, const void *from,
	size_t nbytes)
{
	assert(!d->capturing);
	device_flush_deferred(d, "a copy follows");
	d->backend->copy(d->state, queue, to, from, nbytes);
}

void *device_host_alloc(Device *d, size_t nbytes)
{
	return need(d->backend->host_alloc(d->state, (nbytes + 63) & ~(size_t)63));
}

void device_host_free(Device *d, void *p)
{
	if (p)
		d->backend->host_free(d->state, p);
}

// copy, wait, read the clock
void device_upload(Device *d, void *on_device, const void *on_host,
	size_t nbytes)
{
	device_copy(d, COMPUTE, on_device, on_host, nbytes);
	d->backend->synchronize(d->state, COMPUTE);
}

void device_download(Device *d, void *on_host, const void *on_device,
	size_t nbytes)
{
	device_copy(d, COMPUTE, on_host, on_device, nbytes);
	d->backend->synchronize(d->state, COMPUTE);
}

double device_now_ms(Device *d)
{
	device_flush_deferred(d, "the clock is read");
	for (int queue = 0; queue < NQUEUES; queue++)
		d->backend->synchronize(d->state, queue);
	return clock_ms() - d->start_ms;
}

void device_stamp(Device *d, Queue queue, int which)
{
	assert(which >= 0 && which < NSTAMPS);
	assert(queue == COMPUTE || !d->capturing);
	device_flush_deferred(d, "a stamp follows");
	d->backend->stamp(d->state, queue, which);
}

double device_stamped_ms(Device *d, int from, int to)
{
	return d->backend->stamped_ms(d->state, from, to);
}
