/* both_arrays.h: an argument in the memory of both devices */
#ifndef TESTS_CUDA_BOTH_ARRAYS_H
#define TESTS_CUDA_BOTH_ARRAYS_H

#include "device/cuda/cuda.h"
#include "tests/ops/cuda/arguments.h"

static Device *cpu, *gpu;               /* gpu: NULL where there is none */

// keep an argument on both devices
enum { MARGIN = 256 };

typedef struct Value {
	const Argument *about;
	Type type;
	size_t n, first, nbytes, whole; /* bytes: before the array, in it, in all */
	Array cpu, gpu;
	unsigned char *block;           /* on the GPU */
	unsigned char *before, *after[2];
} Value;

typedef struct Trial {
	char label[160];
	const size_t *n;
	int count;
	Value value[ARGUMENTS];
} Trial;

static void *held[ARGUMENTS];           /* blocks, freed if a test fails */

static inline bool holds_input(const Value *v)
{
	return v->about->role == AS_IN || v->about->role == AS_UPDATED;
}

/* v->cpu holds the values */
static inline void put_on_gpu(Trial *t, Value *v, size_t skew)
{
	bool integer = v->about->stored == INTEGER;
	size_t width = integer ? sizeof(int32_t) : gpu->backend->width(v->type);
	v->first = MARGIN + skew * width;
	v->nbytes = v->n * width;
	v->whole = v->first + v->nbytes + MARGIN;
	v->before = guarded(v->whole);
	v->after[0] = guarded(v->whole);
	v->after[1] = guarded(v->whole);
	v->block = device_alloc(gpu, v->whole, MEM_TEMPORARY, "argument");
	held[v - t->value] = v->block;
	v->gpu = (Array){ v->block + v->first, v->type };
	device_upload(gpu, v->block, v->before, v->whole);
	if (holds_input(v) && integer)
		device_upload(gpu, v->gpu.at, v->cpu.at, v->nbytes);
	else if (holds_input(v))
		array_write(gpu, v->gpu, v->cpu.at, v->n);
	device_download(gpu, v->before, v->block, v->whole);
}

static inline Value *add_value(Trial *t, const Argument *about, Type type,
	size_t n)
{
	Value *v = &t->value[t->count++];
	*v = (Value){ .about = about, .type = type, .n = n };
	if (about->role == AS_NULL || about->role == AS_OVER)
		return v;
	v->cpu = poisoned(n);
	v->cpu.type = type;
	return v;
}

static inline void choose_values(const Trial *t, Value *v)
{
	int stream = (int)(v - t->value);
	for (size_t i = 0; i < v->n && holds_input(v); i++)
		if (v->about->stored == INTEGER)
			((int32_t *)v->cpu.at)[i] = chosen_integer(v->about->values, t->n,
				stream, i);
		else
			reals(v->cpu)[i] = (real)chosen(v->about->values, t->n, stream, i);
	if (holds_input(v))
		round_array(v->type, v->cpu.at, v->n);
}

static inline void gather(const Trial *t, bool on_gpu, Array *a)
{
	memset(a, 0, ARGUMENTS * sizeof *a);    /* those left out: NULL */
	for (int i = 0; i < t->count; i++) {
		const Value *v = &t->value[i];
		if (v->about->role == AS_OVER)
			v = &t->value[v->about->same];
		a[i] = on_gpu ? v->gpu : v->cpu;
	}
}

#endif
