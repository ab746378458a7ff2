/* clock and power, read from a library that the test compiles */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/power.h"
#include "tests/base/folder.h"
#include "tests/base/program.h"

#define BUS "00000000:3B:00.0"
static const char source[] =
	"#include <string.h>\n"
	"static unsigned long long used = 5000000;\n"
	"int nvmlInit_v2(void) { return 0; }\n"
	"int nvmlDeviceGetHandleByPciBusId_v2(const char *b, void **gpu)\n"
	"{ *gpu = &used; return strcmp(b, \"" BUS "\") != 0; }\n"
	"int nvmlDeviceGetClockInfo(void *g, int kind, unsigned *x)\n"
	"{ *x = kind == 1 ? 1500 : 7; return g != &used; }\n"
	"int nvmlDeviceGetPowerUsage(void *g, unsigned *x)\n"
	"{ *x = 650000; return 0; }\n"
	"int nvmlDeviceGetTotalEnergyConsumption(void *g, unsigned long long *x)\n"
	"{ *x = used += 2500; return 0; }\n"
	"int nvmlDeviceGetTemperature(void *g, int kind, unsigned *x)\n"
	"{ *x = 60; return 3; }\n"
	"int nvmlDeviceGetCurrentClocksThrottleReasons(void *g,\n"
	"	unsigned long long *x) { *x = 5; return 0; }\n";

static const char *bus;

static const char *bus_of(void *state)
{
	return bus;
}

static const Backend backend = { .bus = bus_of }, without = { 0 };

static void *compiled(void)
{
	char path[64], command[256];
	snprintf(path, sizeof path, "%s/nvml.c", folder);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(source, f);
	fclose(f);
	snprintf(command, sizeof command, "cc -shared -fPIC -o %s/nvml.so "
		"-Wl,-soname,libnvidia-ml.so.1 %s 2>%s/said", folder, path, folder);
	if (system(command) != 0)
		return NULL;
	snprintf(path, sizeof path, "%s/nvml.so", folder);
	return dlopen(path, RTLD_NOW);
}

static void readings_arrive(void **state)
{
	const struct timespec while_it_reads = { 0, 60000000 };
	Device d = { .backend = &backend };
	if (compiled() == NULL)
		skip();
	bus = BUS;
	PowerWatch *w = power_watch(&d);
	assert_non_null(w);
	nanosleep(&while_it_reads, NULL);
	PowerFacts p = power_read(&w);
	assert_null(w);
	assert_true(p.sm_MHz == 1500 && p.watts == 650 && p.capped == 1);
	assert_true(fabs(p.joules - 2.5) < 1e-9);
	assert_true(isnan(p.celsius));           /* its reading fails */
	bus = "00000000:3C:00.0";
	assert_null(power_watch(&d));
}

static void nothing_is_not_read(void **state)
{
	Device d = { .backend = &without };
	PowerWatch *w = power_watch(&d);
	assert_null(w);
	PowerFacts p = power_read(&w);
	assert_true(isnan(p.sm_MHz) && isnan(p.watts) && isnan(p.joules));
	char *cells;
	size_t n;
	Row row = row_new("1");
	row.to = open_memstream(&cells, &n);
	row_set_power(&row, &p, 3);
	row_emit(&row);
	fclose(row.to);
	assert_string_equal(cells, "1\tsm_MHz=-\twatts=-\tjoules_per_step=-\t"
		"capped=-\tcelsius=-\tstatus=ok\n");
	row_free(&row);
	free(cells);
}

TESTS_BETWEEN(make_folder, remove_folder,
	cmocka_unit_test(readings_arrive),
	cmocka_unit_test(nothing_is_not_read))
