#define _GNU_SOURCE
#include "device/cpu.h"

#include <cblas.h>
#include <dlfcn.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/process.h"

// describe the state of the CPU backend
typedef struct QueuedCall {
	void (*work)(void *arg);
	void *arg;
} QueuedCall;

typedef struct Cpu {
	double stamps_ms[NSTAMPS];
	/* calls that the communication queue had been given, this one included, when
	 * the stamp was queued on it; 0 for the compute queue */
	uint64_t stamps_at[NSTAMPS];
	/* the communication queue; the thread runs from the first job on */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool running, closing;
	QueuedCall *jobs;               /* a ring: call i is jobs[i % capacity] */
	size_t capacity;
	uint64_t queued, done;
} Cpu;

// open the CPU backend
static const char *cpu_missing(int ordinal)
{
	return ordinal == 0 ? NULL : "there is one CPU";
}

static void *cpu_open(int ordinal)
{
	Cpu *c = need(calloc(1, sizeof *c));
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	return c;
}

// describe the processor
static const char *cpu_describe(void *state)
{
	static char text[160];
	char line[256], model[96] = "unknown processor";
	FILE *f = fopen("/proc/cpuinfo", "r");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "model name : %95[^\n]", model) == 1)
			break;
	if (f)
		fclose(f);
	snprintf(text, sizeof text, "%s, %d threads", model, omp_get_max_threads());
	return text;
}

static const char *cpu_libraries(void *state)
{
	return openblas_get_config();
}

static size_t cpu_width(Type type)
{
	return sizeof(real);
}

// find the memory that is available
static size_t read_size(const char *path, const char *format)
{
	char line[256];
	size_t value = 0;
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, format, &value) == 1)
			break;
	if (f)
		fclose(f);
	return value;
}

static size_t cpu_available(void *state)
{
	size_t available = read_size("/proc/meminfo", "MemAvailable: %zu") << 10;
	size_t group = read_size("/sys/fs/cgroup/memory.max", "%zu");
	size_t used = read_size("/sys/fs/cgroup/memory.current", "%zu");
	if (group > used && group - used < available)
		available = group - used;
	return available ? available : (size_t)1 << 30;
}

static size_t cpu_memory(void *state)
{
	return (size_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

static void *cpu_alloc(void *state, size_t nbytes)
{
	return aligned_alloc(64, nbytes);
}

static void cpu_free(void *state, void *p)
{
	free(p);
}

// run the communication queue of the CPU
static void *run_jobs(void *state)
{
	Cpu *c = state;
	pthread_mutex_lock(&c->lock);
	for (;;) {
		while (c->done == c->queued && !c->closing)
			pthread_cond_wait(&c->changed, &c->lock);
		if (c->done == c->queued)
			break;
		QueuedCall job = c->jobs[c->done % c->capacity];
		pthread_mutex_unlock(&c->lock);
		job.work(job.arg);
		pthread_mutex_lock(&c->lock);
		c->done++;
		pthread_cond_broadcast(&c->changed);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

static void cpu_call(void *state, Queue queue, void (*work)(void *arg),
	void *arg)
{
	Cpu *c = state;
	if (queue == COMPUTE) {
		work(arg);
		return;
	}
	pthread_mutex_lock(&c->lock);
	if (c->queued - c->done == c->capacity)
		c->jobs = grow_ring(c->jobs, &c->capacity, c->done, c->queued,
			sizeof *c->jobs);
	c->jobs[c->queued++ % c->capacity] = (QueuedCall){ work, arg };
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	if (!c->running && pthread_create(&c->thread, NULL, run_jobs, c) != 0)
		die("no thread for the communication queue");
	c->running = true;
}

static uint64_t cpu_event(void *state, Queue queue)
{
	return queue == COMM ? ((Cpu *)state)->queued : 0;
}

static bool cpu_reached(void *state, Queue of, uint64_t n)
{
	Cpu *c = state;
	pthread_mutex_lock(&c->lock);
	bool reached = of == COMPUTE || c->done >= n;
	pthread_mutex_unlock(&c->lock);
	return reached;
}

static void cpu_wait(void *state, Queue queue, Queue of, uint64_t n)
{
	Cpu *c = state;
	if (queue == COMM || of == COMPUTE)
		return;
	pthread_mutex_lock(&c->lock);
	while (c->done < n)
		pthread_cond_wait(&c->changed, &c->lock);
	pthread_mutex_unlock(&c->lock);
}

static void cpu_synchronize(void *state, Queue queue)
{
	cpu_wait(state, COMPUTE, queue, cpu_event(state, queue));
}

static void cpu_close(void *state)
{
	Cpu *c = state;
	pthread_mutex_lock(&c->lock);
	c->closing = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	if (c->running)
		pthread_join(c->thread, NULL);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->changed);
	free(c->jobs);
	free(c);
}

// copy, call, stamp on the CPU
typedef struct QueuedCopy {
	void *to;
	const void *from;
	size_t nbytes;
} QueuedCopy;

static void run_copy(void *arg)
{
	QueuedCopy *c = arg;
	memcpy(c->to, c->from, c->nbytes);
	free(c);
}

static void cpu_copy(void *state, Queue queue, void *to, const void *from,
	size_t nbytes)
{
	QueuedCopy *c = need(malloc(sizeof *c));
	*c = (QueuedCopy){ to, from, nbytes };
	cpu_call(state, queue, run_copy, c);
}

static void read_clock(void *ms)
{
	*(double *)ms = clock_ms();
}

static void cpu_stamp(void *state, Queue queue, int which)
{
	Cpu *c = state;
	cpu_call(state, queue, read_clock, &c->stamps_ms[which]);
	c->stamps_at[which] = cpu_event(state, queue);
}

static double cpu_stamped_ms(void *state, int from, int to)
{
	const Cpu *c = state;
	cpu_wait(state, COMPUTE, COMM, c->stamps_at[from]);
	cpu_wait(state, COMPUTE, COMM, c->stamps_at[to]);
	return c->stamps_ms[to] - c->stamps_ms[from];
}

// set what libraries read before main
static const char *better_kernels(void)
{
	if (strcmp(openblas_get_corename(), "Prescott") != 0)
		return NULL;
	if (__builtin_cpu_supports("avx512vl")
		&& __builtin_cpu_supports("avx512bw"))
		return "SkylakeX";
	return __builtin_cpu_supports("avx2") ? "Haswell" : NULL;
}

static bool set_default(const char *name, const char *value)
{
	return value && !getenv(name) && setenv(name, value, 0) == 0;
}

/* does this code lie in the program that was started, and not in a library that
 * another program has loaded? */
static bool in_program(void)
{
	Dl_info here, entry;
	return dladdr((void *)in_program, &here)
		&& dladdr((void *)getauxval(AT_ENTRY), &entry)
		&& here.dli_fbase == entry.dli_fbase;
}

__attribute__((constructor))
static void set_environment(void)
{
	if (!in_program())
		return;
	bool changed = set_default("OPENBLAS_CORETYPE", better_kernels());
	changed |= set_default("OMP_WAIT_POLICY", "passive");
	if (changed)
		process_again();
}

// list the functions of the CPU backend
const Backend cpu_backend = {
	.name = "cpu", .why_missing = cpu_missing, .open = cpu_open,
	.close = cpu_close,
	.describe = cpu_describe, .libraries = cpu_libraries, .memory = cpu_memory,
	.available = cpu_available, .width = cpu_width, .alloc = cpu_alloc,
	.free = cpu_free, .host_alloc = cpu_alloc, .host_free = cpu_free,
	.copy = cpu_copy, .call = cpu_call,
	.synchronize = cpu_synchronize, .event = cpu_event, .wait = cpu_wait,
	.reached = cpu_reached, .stamp = cpu_stamp, .stamped_ms = cpu_stamped_ms,
};
