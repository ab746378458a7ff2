/* on_cpu.h: tests that share a CPU device */
#ifndef TESTS_ON_CPU_H
#define TESTS_ON_CPU_H

#include "tests/ops/compare.h"

static Device *device;
static const Ops *ops;

static inline void open_cpu(void)
{
	device = device_open("cpu");
	ops = ops_for(device);
}

static inline int close_cpu(int failed)
{
	if (!failed)
		device_close(&device);
	return failed;
}

#define run_on_cpu(tests) \
	(open_cpu(), close_cpu(cmocka_run_group_tests(tests, NULL, NULL)))

#endif
