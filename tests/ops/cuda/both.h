/* both.h: one call on the CPU and on the GPU, from equal inputs, compared */
#ifndef TESTS_CUDA_BOTH_H
#define TESTS_CUDA_BOTH_H

#include "device/cuda/cuda.h"
#include "ops/array.h"
#include "tests/ops/compare.h"

static Device *cpu, *gpu;               /* gpu: NULL where there is none */

// describe a call and its arguments
typedef enum Role { AS_NULL, AS_IN, AS_OUT, AS_UPDATED, AS_SCRATCH, AS_OVER }
	Role;
typedef enum StoredAs { HIGH, LOW, OTHER, INTEGER } StoredAs;
typedef enum Values { SPREAD, GAIN, WIDE, GATE, LOGSUM, EIGHTHS, LOWER, WEIGHTS,
	NONFINITE, STEP, TOKENS, SOME_TOKENS, ZERO, ONE } Values;
enum { D0 = 1, D1 = 2, D2 = 4, D3 = 8, ALL = 15, DIMS = 4, ARGUMENTS = 10 };

typedef struct Argument {
	Role role;
	StoredAs stored;
	unsigned dims;                  /* the sizes whose product is its length */
	Values values;
	double relative, absolute;      /* roundings: see limit_of */
	unsigned over;                  /* the sizes it is a sum or a mean over */
	size_t times;                   /* a factor of the length; 0 means 1 */
	int same;                       /* AS_OVER: the argument it lies over */
} Argument;

#define ARGUMENT(ROLE, STORED, DIMS, ...) \
	{ .role = ROLE, .stored = STORED, .dims = DIMS, __VA_ARGS__ }
#define IN(STORED, DIMS, ...)       /* ..., values */ \
	ARGUMENT(AS_IN, STORED, DIMS, .values = __VA_ARGS__)
#define OUT(STORED, DIMS, ...)      /* ..., exactness */ \
	ARGUMENT(AS_OUT, STORED, DIMS, __VA_ARGS__)
#define UPDATED(STORED, DIMS, ...)  /* ..., values, exactness */ \
	ARGUMENT(AS_UPDATED, STORED, DIMS, .values = __VA_ARGS__)
#define SCRATCH(STORED, DIMS) ARGUMENT(AS_SCRATCH, STORED, DIMS)
#define OVER(SAME) { .role = AS_OVER, .stored = LOW, .same = SAME }
#define NOTHING { .role = AS_NULL }

typedef void Call(Device *d, const Ops *o, const Array *a, const size_t *n,
	int how);
typedef size_t Sizes[DIMS];

typedef struct Case {
	const char *name;
	Call *call;
	const Sizes *shapes;            /* the last begins with 0 */
	int how;                        /* a sign, a beta, what is left out */
	Argument argument[ARGUMENTS];
} Case;

static inline size_t product_of(unsigned dims, const size_t *n)
{
	size_t product = 1;
	for (int d = 0; d < DIMS; d++)
		if (dims >> d & 1 && n[d] > 0)
			product *= n[d];
	return product;
}

// choose values that bite
static inline double chosen(Values values, const size_t *n, int stream,
	size_t i)
{
	static const double step[] = { 0.9999, 0.01, 0.9, 0.95, 0.1, 0.05, 1e-8,
		0.5 };
	double z = 4 * random_uniform(1, stream, i) - 2;
	double away = z < 0 ? -0.25 : 0.25, masked = i % 2 ? NAN : INFINITY;
	size_t T = n[1] ? n[1] : 1, row = i / T % T, column = i % T;
	switch (values) {
	case GAIN:      return 1 + 0.15 * z;
	case WIDE:      return away + 5 * z;
	case GATE:      return (away + 5 * z) * (i % 13 ? 1 : 10);
	case LOGSUM:    return 10 + 0.15 * z;
	case EIGHTHS:   return (random_bits(1, stream, i) % 17) / 8.0 - 1;
	case LOWER:     return column > row ? masked : away + 5 * z;
	case WEIGHTS:   return column > row ? masked : (1 + 0.15 * z) / (row + 1);
	case NONFINITE: return i % 7 ? z
		: (const double[]){ NAN, INFINITY, -INFINITY }[i % 3];
	case STEP:      return step[i];
	case ONE:       return 1;
	default:        return away + 0.5 * z;
	}
}

static inline int32_t chosen_integer(Values values, const size_t *n, int stream,
	size_t i)
{
	size_t last = n[2] ? n[2] : n[1];               /* the vocabulary */
	if (values == SOME_TOKENS)                      /* or -1 */
		return (int32_t)(random_bits(1, stream, i) % (last + 1)) - 1;
	return values == TOKENS ? (int32_t)(random_bits(1, stream, i) % last)
		: values == ONE;
}

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

// call on the GPU from fresh memory
static inline void call_on_gpu(Trial *t, Call *call, int how, int run)
{
	Array a[ARGUMENTS];
	gather(t, true, a);
	for (int i = 0; i < t->count; i++)
		if (t->value[i].block)
			device_upload(gpu, t->value[i].block, t->value[i].before,
				t->value[i].whole);
	call(gpu, ops_for(gpu), a, t->n, how);
	for (int i = 0; i < t->count; i++)
		if (t->value[i].block)
			device_download(gpu, t->value[i].after[run], t->value[i].block,
				t->value[i].whole);
}

// find what the GPU wrote and should not have
static inline void expect_undamaged(const Trial *t, int i)
{
	const Value *v = &t->value[i];
	bool input = v->about->role == AS_IN;
	if (v->block == NULL)
		return;
	for (size_t at = 0; at < v->whole; at++)
		if ((input || at - v->first >= v->nbytes)
			&& v->after[1][at] != v->before[at])
			fail_msg("%s, argument %d: byte %td of %zu was written", t->label,
				i, (ptrdiff_t)(at - v->first), v->nbytes);
	for (size_t at = 0; at < v->whole && v->about->role != AS_SCRATCH; at++)
		if (v->after[0][at] != v->after[1][at])
			fail_msg("%s, argument %d: byte %td differs between two runs",
				t->label, i, (ptrdiff_t)(at - v->first));
}

// derive how far the GPU's result may be off
static inline Expected limit_of(const Value *v, const size_t *n, double want)
{
	const Argument *a = v->about;
	double length = product_of(a->over, n), relative = a->relative;
	if (a->over)
		relative *= 1 + sqrt(length);
	if (!isfinite(want))
		return (Expected){ want, 0 };       /* never met */
	double limit = EPS * (relative * fabs(want) + a->absolute * length);
	if (limit > 0 && v->type != FP32)
		limit += type_spacing(v->type, want);
	return (Expected){ want, limit };
}

// compare what both devices left
static inline void expect_agreement(const Trial *t, int i)
{
	const Value *v = &t->value[i];
	if (v->about->role != AS_OUT && v->about->role != AS_UPDATED)
		return;
	Array got = poisoned(v->n);
	Expected *want = expected(v->n);
	bool integer = v->about->stored == INTEGER;
	array_read(gpu, got.at, v->gpu, v->n);
	for (size_t e = 0; e < v->n; e++)
		if (integer) {
			int32_t bits;
			memcpy(&bits, &reals(got)[e], sizeof bits);
			reals(got)[e] = (real)bits;
			want[e] = (Expected){ ((int32_t *)v->cpu.at)[e], 0 };
		} else {
			want[e] = limit_of(v, t->n, reals(v->cpu)[e]);
		}
	char what[200];
	snprintf(what, sizeof what, "%s, argument %d", t->label, i);
	expect_close(what, got, want, v->n);
}

static inline int release_both(void **state)
{
	for (int i = 0; i < ARGUMENTS; i++) {
		device_free(gpu, held[i]);
		held[i] = NULL;
	}
	return release(state);
}

static inline void run_trial(Trial *t, Call *call, int how)
{
	Array a[ARGUMENTS];
	gather(t, false, a);
	for (int run = 0; run < 2; run++)
		call_on_gpu(t, call, how, run);
	call(cpu, ops_for(cpu), a, t->n, how);
	for (int i = 0; i < t->count; i++)
		expect_undamaged(t, i);
	for (int i = 0; i < t->count; i++)
		expect_agreement(t, i);
	assert_int_equal(release_both(NULL), 0);
}

// run a row of the table
static inline bool too_large(const size_t *n)
{
	return getenv("QUICK") && product_of(ALL, n) > 5000;
}

static inline Trial trial_of(const Case *c, const size_t *n, Type type,
	size_t skew)
{
	const Type types[] = { [HIGH] = FP32, [LOW] = type,
		[OTHER] = (Type)((type + 1) % 3), [INTEGER] = FP32 };
	Trial t = { .n = n };
	snprintf(t.label, sizeof t.label,
		"%s(%zu, %zu, %zu, %zu), %s, skewed by %zu", c->name, n[0], n[1], n[2],
		n[3], type_names[type], skew);
	int last = ARGUMENTS;
	while (last > 0 && c->argument[last - 1].role == AS_NULL)
		last--;
	for (int i = 0; i < last; i++) {
		const Argument *a = &c->argument[i];
		Value *v = add_value(&t, a, types[a->stored],
			product_of(a->dims, n) * (a->times ? a->times : 1));
		if (v->cpu.at == NULL)
			continue;
		choose_values(&t, v);
		put_on_gpu(&t, v, skew);
	}
	return t;
}

static inline bool has_low(const Case *c)
{
	bool low = false;
	for (int i = 0; i < ARGUMENTS; i++)
		low |= c->argument[i].stored == LOW;
	return low;
}

static inline void run_case(void **state)
{
	const Case *c = *state;
	if (gpu == NULL)
		skip();
	for (const Sizes *n = c->shapes; **n > 0; n++)
		for (Type type = FP32; type <= (has_low(c) ? FP16 : FP32); type++)
			for (size_t skew = 0; skew < 2; skew++) {
				if (too_large(*n))
					continue;
				Trial t = trial_of(c, *n, type, skew);
				run_trial(&t, c->call, c->how);
			}
}

// open both devices, and close them
static inline void run_on_gpu(void **test)
{
	if (gpu == NULL)
		skip();
	((CMUnitTestFunction)(uintptr_t)*test)(NULL);
}

#define on_gpu(test)                                                 \
	{ .name = #test, .test_func = run_on_gpu,                        \
		.teardown_func = release_both,                               \
		.initial_state = (void *)(uintptr_t)(test) }

static inline int open_both(void **state)
{
	const char *missing = cuda_backend.why_missing(0);
	cpu = device_open("cpu");
	if (missing)
		print_message("no GPU, so nothing is tested here: %s\n", missing);
	else
		gpu = device_open("cuda");
	return 0;
}

static inline int close_both(void **state)
{
	device_close(&cpu);
	if (gpu)
		device_close(&gpu);             /* asserts that nothing is in use */
	return 0;
}

static inline void list_cases(struct CMUnitTest *tests, const Case *cases,
	size_t n)
{
	for (size_t i = 0; i < n; i++)
		tests[i] = (struct CMUnitTest){ .name = cases[i].name,
			.test_func = run_case, .teardown_func = release_both,
			.initial_state = (void *)(uintptr_t)&cases[i] };
}

#endif
