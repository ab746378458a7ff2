#define _GNU_SOURCE
#include "bench/power.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"

/* constants of NVML: a kind of clock, a thermometer, reasons for a lower clock */
enum { CLOCK_SM = 1, AT_THE_GPU = 0, PERIOD_MS = 20,
	HELD_DOWN = 0x04 | 0x20 | 0x40 | 0x80 };  /* power; heat, twice; a brake */

// declare the functions of NVML that we call
typedef struct Nvml {
	void *library, *gpu;
	int (*init)(void);
	int (*by_bus)(const char *bus, void **gpu);
	int (*clock)(void *gpu, int kind, unsigned *MHz);
	int (*power)(void *gpu, unsigned *mW);
	int (*energy)(void *gpu, unsigned long long *mJ);
	int (*temperature)(void *gpu, int kind, unsigned *celsius);
	int (*reasons)(void *gpu, unsigned long long *bits);
} Nvml;

static bool open_nvml(Nvml *n, const char *bus)
{
	const struct { const char *name; void *at; } wanted[] = {
		{ "nvmlInit_v2", &n->init },
		{ "nvmlDeviceGetHandleByPciBusId_v2", &n->by_bus },
		{ "nvmlDeviceGetClockInfo", &n->clock },
		{ "nvmlDeviceGetPowerUsage", &n->power },
		{ "nvmlDeviceGetTotalEnergyConsumption", &n->energy },
		{ "nvmlDeviceGetTemperature", &n->temperature },
		{ "nvmlDeviceGetCurrentClocksThrottleReasons", &n->reasons },
	};
	n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (n->library == NULL)
		return false;
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
		if ((*(void **)wanted[i].at = dlsym(n->library, wanted[i].name)) == NULL)
			return false;
	return n->init() == 0 && n->by_bus(bus, &n->gpu) == 0;
}

// read a GPU again and again
enum { MHZ, MILLIWATTS, DEGREES, CAPPED, NREADINGS };

struct PowerWatch {
	Nvml nvml;
	pthread_t thread;
	bool stop;                       /* read and written by atomics */
	double sum[NREADINGS];
	long n[NREADINGS];
	unsigned long long before;       /* mJ; 0: there is no counter */
};

static void add_reading(PowerWatch *w, int which, int status, double value)
{
	if (status == 0) {
		w->sum[which] += value;
		w->n[which]++;
	}
}

// read clock, power and heat until told to stop
static void *read_on(void *watch)
{
	PowerWatch *w = watch;
	const Nvml *n = &w->nvml;
	const struct timespec period = { 0, PERIOD_MS * 1000000L };
	while (!__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE)) {
		unsigned x = 0;
		unsigned long long bits = 0;
		int status = n->clock(n->gpu, CLOCK_SM, &x);
		add_reading(w, MHZ, status, x);
		status = n->power(n->gpu, &x);
		add_reading(w, MILLIWATTS, status, x);
		status = n->temperature(n->gpu, AT_THE_GPU, &x);
		add_reading(w, DEGREES, status, x);
		status = n->reasons(n->gpu, &bits);
		add_reading(w, CAPPED, status, (bits & HELD_DOWN) != 0);
		nanosleep(&period, NULL);
	}
	return NULL;
}

// begin to watch a GPU
PowerWatch *power_watch(const Device *d)
{
	const char *bus = d->backend->bus ? d->backend->bus(d->state) : NULL;
	PowerWatch *w = need(calloc(1, sizeof *w));
	if (bus == NULL || !open_nvml(&w->nvml, bus)) {
		free(w);
		return NULL;
	}
	if (w->nvml.energy(w->nvml.gpu, &w->before) != 0)
		w->before = 0;
	if (pthread_create(&w->thread, NULL, read_on, w) != 0)
		die("cannot start a thread that reads the clock of a GPU");
	return w;
}

// end a watch and take means
static double mean_of(const PowerWatch *w, int which)
{
	return w->n[which] ? w->sum[which] / w->n[which] : NAN;
}

PowerFacts power_read(PowerWatch **watch)
{
	PowerWatch *w = *watch;
	if (w == NULL)
		return (PowerFacts){ NAN, NAN, NAN, NAN, NAN };
	unsigned long long after = 0;
	bool counted = w->before
		&& w->nvml.energy(w->nvml.gpu, &after) == 0;
	__atomic_store_n(&w->stop, true, __ATOMIC_RELEASE);
	pthread_join(w->thread, NULL);
	PowerFacts p = { mean_of(w, MHZ), mean_of(w, MILLIWATTS) * 1e-3,
		mean_of(w, DEGREES), counted ? (after - w->before) * 1e-3 : NAN,
		mean_of(w, CAPPED) };
	free(w);
	*watch = NULL;
	return p;
}

// put clock and power into a row
static void set_known(Row *row, const char *column, const char *format,
	double value)
{
	char text[32];
	snprintf(text, sizeof text, format, value);
	row_set(row, column, "%s", isnan(value) ? "-" : text);
}

void row_set_power(Row *row, const PowerFacts *p, int steps)
{
	set_known(row, "sm_MHz", "%.0f", p->sm_MHz);
	set_known(row, "watts", "%.1f", p->watts);
	set_known(row, "joules_per_step", "%.2f", p->joules / steps);
	set_known(row, "capped", "%.3f", p->capped);
	set_known(row, "celsius", "%.0f", p->celsius);
}
