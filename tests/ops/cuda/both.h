/* both.h: one call on the CPU and on the GPU, from equal inputs, compared */
#ifndef TESTS_CUDA_BOTH_H
#define TESTS_CUDA_BOTH_H

#include "tests/ops/cuda/both_results.h"

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
