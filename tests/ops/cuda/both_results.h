/* both_results.h: what both devices left, compared */
#ifndef TESTS_CUDA_BOTH_RESULTS_H
#define TESTS_CUDA_BOTH_RESULTS_H

#include "tests/ops/cuda/both_arrays.h"

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

#endif
