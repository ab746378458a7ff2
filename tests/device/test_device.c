#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"
#include "tests/base/exits.h"
#include "tests/base/program.h"

// test totals, peaks and the log
static void totals(void **state)
{
	Device *d = device_open("cpu");
	device_log_memory(d, true);
	void *a = device_alloc(d, 1000, MEM_PARAMETER, "a");
	void *b = NULL;
	static const char copy[] = "forward";
	const RangePath *path = NULL;
	RANGE(d, copy)
		path = d->range;
	RANGE(d, "forward") {
		assert_ptr_equal(d->range, path);   /* equal names, one path */
		b = device_alloc(d, 64, MEM_ACTIVATION, "b");
		assert_true((uintptr_t)a % 64 == 0 && (uintptr_t)b % 64 == 0);
		assert_int_equal(d->active[MEM_PARAMETER], 1024);
		assert_int_equal(d->total, 1088);
		device_free(d, b);
	}
	assert_int_equal(d->total, 1024);
	assert_int_equal(d->total_peak, 1088);
	assert_int_equal(d->peak[MEM_ACTIVATION], 64);
	device_reset_peak(d);
	assert_int_equal(d->total_peak, 1024);
	// count memory that a library has allocated, and take it off
	size_t reserved = d->reserved;
	device_count(d, &d, 65, MEM_GRADIENT, "a library's", true);
	assert_int_equal(d->active[MEM_GRADIENT], 128);
	assert_int_equal(d->reserved, reserved + 128);
	device_count(d, &d, 65, MEM_GRADIENT, "a library's", false);
	assert_int_equal(d->reserved, reserved);
	assert_int_equal(d->total, 1024);
	assert_int_equal(d->total_peak, 1152);
	assert_ptr_equal(device_alloc(d, 60, MEM_TEMPORARY, "c"), b);
	device_free(d, b);
	device_free(d, a);
	// check what the log has
	assert_int_equal(d->nlog, 8);
	assert_true(d->log[1].nbytes == 64 && d->log[2].nbytes == -64
		&& strcmp(d->log[1].range->name, "forward") == 0
		&& d->log[1].range->outer == &d->outside);
	assert_true(strcmp(d->log[6].what, "c") == 0
		&& d->log[6].category == MEM_TEMPORARY);
	device_close(&d);
	assert_null(d);
}

// test that the log is bounded
static void log_is_bounded(void **state)
{
	Device *d = device_open("cpu");
	device_log_memory(d, true);
	for (int i = 0; i < LOG_EVENTS / 2 + 5; i++)
		device_free(d, device_alloc(d, 64, MEM_TEMPORARY, "block"));
	assert_int_equal(d->nlog, LOG_EVENTS);
	assert_int_equal(d->unlogged, 10);
	device_close(&d);
}

// test that the limit holds
static void leave_with_7(size_t need, size_t have, const char *what)
{
	_exit(need == 1 << 20 && have == (1 << 20) - 64 && strcmp(what,
		"too much") == 0 ? 7 : 8);
}

static void exceed(void *context)
{
	Device *d = device_open("cpu");
	d->limit = 1 << 20;
	d->on_oom = leave_with_7;
	device_free(d, device_alloc(d, 1 << 19, MEM_ACTIVATION,
		"fits, and is returned to make room"));
	device_alloc(d, 64, MEM_ACTIVATION, "stays");
	device_alloc(d, 1 << 20, MEM_ACTIVATION, "too much");
}

static void open_unknown(void *name)
{
	device_open(name);
}

static void limit_holds(void **state)
{
	assert_int_equal(exit_status(exceed, NULL), 7);
}

static void unknown_device(void **state)
{
	assert_int_equal(exit_status(open_unknown, "tpu"), 2);
}

TESTS(
	cmocka_unit_test(totals),
	cmocka_unit_test(log_is_bounded),
	cmocka_unit_test(limit_holds),
	cmocka_unit_test(unknown_device))
