#include "device/dry.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/real.h"

// hand out dry addresses
#define FIRST_ADDRESS ((uintptr_t)1 << 50)
enum { ALIGNMENT = 512 };

static void *dry_open(int ordinal)
{
	uintptr_t *next = need(malloc(sizeof *next));
	*next = FIRST_ADDRESS;
	return next;
}

static void *dry_alloc(void *state, size_t nbytes)
{
	uintptr_t *next = state, at = *next;
	*next += (nbytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	return (void *)at;
}

static void dry_free(void *state, void *p)
{
}

static size_t endless(void *state)
{
	return SIZE_MAX / 2;
}

static size_t no_memory(void *state)
{
	return 0;
}

static void dry_copy(void *state, Queue queue, void *to, const void *from,
	size_t nbytes)
{
	if ((uintptr_t)to < FIRST_ADDRESS)
		memset(to, 0, nbytes);
}

static void *dry_host_alloc(void *state, size_t nbytes)
{
	return aligned_alloc(64, nbytes);
}

static void dry_host_free(void *state, void *p)
{
	free(p);
}

// do no work
static const char *dry_missing(int ordinal)
{
	return ordinal == 0 ? NULL : "there is one dry device";
}

static void dry_call(void *state, Queue queue, void (*work)(void *arg),
	void *arg)
{
}

static void dry_synchronize(void *state, Queue queue)
{
}

static uint64_t dry_event(void *state, Queue queue)
{
	return 0;
}

static void dry_wait(void *state, Queue queue, Queue of, uint64_t n)
{
}

static bool dry_reached(void *state, Queue of, uint64_t n)
{
	return true;
}

static void dry_stamp(void *state, Queue queue, int which)
{
}

static double dry_stamped_ms(void *state, int from, int to)
{
	return 0;
}

// list the functions of the dry backends
static size_t width_on_cpu(Type type)
{
	return sizeof(real);
}

static size_t width_on_gpu(Type type)
{
	return type_size(type);
}

static const char *describe_cpu(void *state)
{
	return "none: allocations count, as on a CPU";
}

static const char *describe_gpu(void *state)
{
	return "none: allocations count, as on an H100";
}

static const char *no_libraries(void *state)
{
	return "none";
}

#define DRY(NAME, DESCRIBE, WIDTH) { .name = NAME, .dry = true,              \
	.why_missing = dry_missing, .open = dry_open, .close = free,          \
	.describe = DESCRIBE, .libraries = no_libraries, .memory = no_memory, \
	.available = endless, .width = WIDTH, .alloc = dry_alloc,             \
	.free = dry_free, .host_alloc = dry_host_alloc,                       \
	.host_free = dry_host_free, .copy = dry_copy, .call = dry_call,       \
	.synchronize = dry_synchronize, .event = dry_event, .wait = dry_wait, \
	.reached = dry_reached, .stamp = dry_stamp,                           \
	.stamped_ms = dry_stamped_ms }

const Backend dry_cpu_backend = DRY("cpu", describe_cpu, width_on_cpu),
	dry_cuda_backend = DRY("cuda", describe_gpu, width_on_gpu);
