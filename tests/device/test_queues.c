/* queues, events, and memory that a queue still uses; on the CPU and, where
 * there is one, on a GPU */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"
#include "tests/base/program.h"

static const char *const devices[] = { "cpu", "auto" };
enum { NDEVICES = sizeof devices / sizeof *devices };

typedef struct QueueNote { int *list, *n, value; } QueueNote;

static void take_down(void *note)
{
	QueueNote *a = note;
	usleep(1000);
	a->list[(*a->n)++] = a->value;
}

static void work_keeps_its_order(void **state)
{
	enum { MANY = 100 };
	for (int i = 0; i < NDEVICES; i++) {
		// queue all notes, and look at them afterwards
		Device *d = device_open(devices[i]);
		int list[MANY], n = 0;
		QueueNote notes[MANY];
		Event events[MANY];
		for (int k = 0; k < MANY; k++) {
			notes[k] = (QueueNote){ list, &n, k };
			device_call(d, COMM, take_down, &notes[k]);
			events[k] = device_event(d, COMM);
		}

		assert_false(device_reached(d, events[MANY - 1]));
		device_now_ms(d);                   /* waits for all */
		for (int k = 0; k < MANY; k++)
			assert_true(list[k] == k && device_reached(d, events[k]));
		device_close(&d);
	}
}

enum { BYTES = 1 << 16 };

static void nap(void *us)
{
	usleep((unsigned)(uintptr_t)us);
}

/* what the device holds at p */
static unsigned char first_byte(Device *d, const void *p)
{
	unsigned char host[BYTES];
	device_download(d, host, p, BYTES);
	return host[BYTES - 1] == host[0] ? host[0] : 255;
}

static void set(Device *d, void *p, int byte)
{
	unsigned char host[BYTES];
	memset(host, byte, BYTES);
	device_upload(d, p, host, BYTES);
}

/* b = a on the communication queue, after a nap */
static Event copy_late(Device *d, void *b, void *a)
{
	device_wait(d, COMM, device_event(d, COMPUTE));
	device_call(d, COMM, nap, (void *)20000);
	device_copy(d, COMM, b, a, BYTES);
	return device_event(d, COMM);
}

static void queues_wait_for_events(void **state)
{
	for (int i = 0; i < NDEVICES; i++) {
		// read what a late copy has written
		Device *d = device_open(devices[i]);
		void *a = device_alloc(d, BYTES, MEM_TEMPORARY, "a"),
			*b = device_alloc(d, BYTES, MEM_TEMPORARY, "b");
		set(d, b, 1);
		set(d, a, 2);
		Event copied = copy_late(d, b, a);
		assert_false(device_reached(d, copied));
		device_wait(d, COMPUTE, copied);
		assert_int_equal(first_byte(d, b), 2);
		assert_true(device_reached(d, copied));
		device_free(d, a);
		device_free(d, b);
		device_close(&d);
	}
}

static void used_blocks_are_not_overwritten(void **state)
{
	for (int i = 0; i < NDEVICES; i++) {
		// free a block that a queue still reads
		Device *d = device_open(devices[i]);
		void *a = device_alloc(d, BYTES, MEM_TEMPORARY, "a"),
			*b = device_alloc(d, BYTES, MEM_TEMPORARY, "b");
		set(d, a, 1);
		Event copied = copy_late(d, b, a);
		device_hold_until(d, a, copied);
		device_free(d, a);
		void *c = device_alloc(d, BYTES, MEM_TEMPORARY, "c");
		assert_ptr_equal(c, a);             /* there is no other */
		set(d, c, 2);
		device_wait(d, COMPUTE, copied);
		assert_int_equal(first_byte(d, b), 1);

		// prefer an idle block of the same size
		void *idle = device_alloc(d, BYTES, MEM_TEMPORARY, "idle");
		device_call(d, COMM, nap, (void *)20000);
		Event later = device_event(d, COMM);
		device_hold_until(d, c, later);
		device_free(d, idle);
		device_free(d, c);
		assert_ptr_equal(device_alloc(d, BYTES, MEM_TEMPORARY, "d"), idle);
		assert_false(device_reached(d, later));
		device_free(d, idle);
		device_free(d, b);
		device_close(&d);                   /* waits for the nap */
	}
}

static void stamps_tell_the_time_of_a_queue(void **state)
{
	for (int i = 0; i < NDEVICES; i++) {
		Device *d = device_open(devices[i]);
		device_stamp(d, COMM, 0);
		device_call(d, COMM, nap, (void *)20000);
		device_stamp(d, COMM, 1);
		double ms = device_stamped_ms(d, 0, 1);
		assert_true(ms >= 20 && ms < 2000);
		device_close(&d);
	}
}

static void stamp_wait(void *device, bool begins)
{
	device_stamp(device, COMPUTE, begins ? 2 : 3);
}

static void a_watcher_sees_waits_alone(void **state)
{
	for (int i = 0; i < NDEVICES; i++) {
		Device *d = device_open(devices[i]);
		d->watch_wait = stamp_wait;
		d->wait_watcher = d;
		device_stamp(d, COMPUTE, 0);
		device_call(d, COMPUTE, nap, (void *)60000);
		device_wait(d, COMM, device_event(d, COMPUTE));
		device_call(d, COMM, nap, (void *)20000);
		device_wait(d, COMPUTE, device_event(d, COMM));
		device_stamp(d, COMPUTE, 1);
		double waited = device_stamped_ms(d, 2, 3);
		assert_true(waited >= 15);
		assert_true(device_stamped_ms(d, 0, 1) >= waited + 60);
		device_close(&d);
	}
}

static void reserved_memory_is_there(void **state)
{
	Device *d = device_open("cpu");
	d->limit = 1 << 20;
	assert_true(device_reserve(d, 0) && device_reserve(d, 1 << 20));
	void *all = device_alloc(d, 1 << 20, MEM_TEMPORARY, "all");
	assert_false(device_reserve(d, 64));
	device_free(d, all);
	assert_true(device_reserve(d, 64));     /* what is free makes room */
	device_close(&d);
}

static void lent_memory_serves_instead_of_the_pool(void **state)
{
	Device *d = device_open("cpu");
	_Alignas(64) char lent[256];
	size_t reserved = d->reserved;
	device_lend(d, lent, sizeof lent);
	char *first = device_alloc(d, 65, MEM_TEMPORARY, "two lines");
	device_free(d, first);
	char *second = device_alloc(d, 1, MEM_TEMPORARY, "a line");
	assert_true(first == lent && second == lent + 128);
	device_return(d);
	assert_int_equal(d->reserved, reserved);
	char *own = device_alloc(d, 64, MEM_TEMPORARY, "own");
	assert_true(own < lent || own >= lent + sizeof lent);
	device_free(d, own);
	device_close(&d);
}

static int released;

static void count_release(Device *d, void *kept)
{
	released += *(int *)kept;
}

static void kept_things_belong_to_one_device(void **state)
{
	Device *d[2] = { device_open("cpu"), device_open("cpu") };
	for (int i = 0; i < 2; i++) {
		int *kept = device_keep(d[i], sizeof *kept, count_release);
		assert_int_equal(*kept, 0);
		*kept = 1 + i;
		assert_ptr_equal(device_keep(d[i], sizeof *kept, count_release), kept);
	}
	device_close(&d[1]);
	assert_int_equal(released, 2);
	device_close(&d[0]);
	assert_int_equal(released, 3);
}

TESTS(
	cmocka_unit_test(work_keeps_its_order),
	cmocka_unit_test(queues_wait_for_events),
	cmocka_unit_test(used_blocks_are_not_overwritten),
	cmocka_unit_test(stamps_tell_the_time_of_a_queue),
	cmocka_unit_test(a_watcher_sees_waits_alone),
	cmocka_unit_test(reserved_memory_is_there),
	cmocka_unit_test(lent_memory_serves_instead_of_the_pool),
	cmocka_unit_test(kept_things_belong_to_one_device))
