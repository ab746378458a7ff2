/* linear layers in FP8: every setting along both paths, and what is not finite */
#define _GNU_SOURCE
#include <omp.h>

#include "jit/jit.h"
#include "model/fp8.h"
#include "tests/base/exits.h"
#include "tests/ops/on_cpu.h"
#include "train/step.h"

static const Shape shape = { 50, 12, 32, 56, 2, 2, 16, 10000 };
enum { B = 3, T = 11 };

// test: every setting is near bf16
static Model *new_model(int policy, bool fused, Fp8Settings s)
{
	Model *m = model_new(device, &shape, &policies[policy], 5);
	if (m->fp8)
		fp8_set(m, s);
	if (fused)
		model_fuse(m);
	return m;
}

static double gradients_of(Model *m, Array *into)
{
	Batch b = batch_random(B, T, shape.vocab, 3);
	double loss = model_forward(m, b.tokens, b.targets, B, T, true);
	model_backward(m, false);
	*into = copied(m->gradients, m->extent);
	batch_free(&b);
	return loss;
}

static double distance(Array a, Array b, size_t n)
{
	double square = 0, size = 0;
	for (size_t i = 0; i < n; i++) {
		double off = (double)reals(a)[i] - reals(b)[i];
		square += off * off;
		size += (double)reals(b)[i] * reals(b)[i];
	}
	return sqrt(square / size);
}

static double error_under(int policy, bool fused, Fp8Settings s)
{
	Model *exact = new_model(POLICY_FP32, false, s),
		*m = new_model(policy, fused, s);
	Array want, got;
	double loss = gradients_of(exact, &want);
	assert_true(fabs(gradients_of(m, &got) - loss) <= 0.02 * loss);
	double error = distance(got, want, m->extent);
	model_free(&m);
	model_free(&exact);
	return error;
}

static void settings_are_near_bf16(void **state)
{
	for (int i = 0; i < NFP8_SCALINGS * 2; i++) {
		bool fused = i % 2;
		double bf16 = error_under(POLICY_BF16, fused, (Fp8Settings){ 0 }),
			e4m3 = error_under(POLICY_FP8, fused, (Fp8Settings){ i / 2, E4M3 }),
			e5m2 = error_under(POLICY_FP8, fused, (Fp8Settings){ i / 2, E5M2 });
		if (!(bf16 < e4m3 / 4 && e4m3 < e5m2 && e5m2 < 0.2))
			fail_msg("scaling %d, %s: off by %.3g in e4m3, %.3g in e5m2, %.3g in "
				"bf16", i / 2, fusion_names[fused], e4m3, e5m2, bf16);
		release(state);
	}
}

// test: a delayed maximum is used from the second step on
static void maxima_are_delayed(void **state)
{
	Model *now = new_model(POLICY_FP8, true, (Fp8Settings){ FP8_TENSOR, E5M2 }),
		*m = new_model(POLICY_FP8, true, (Fp8Settings){ FP8_DELAYED, E5M2 });
	Array want, got;
	gradients_of(now, &want);
	gradients_of(m, &got);
	assert_memory_equal(got.at, want.at, m->extent * sizeof(real));
	fp8_advance(m);
	gradients_of(m, &got);
	assert_memory_equal(got.at, want.at, m->extent * sizeof(real));
	for (size_t i = 0; i < FP8_WINDOW * m->fp8->sites; i++)
		reals(m->fp8->history)[i] /= 100;
	fp8_history_changed(m);
	gradients_of(m, &got);
	assert_true(distance(got, want, m->extent) > 0.3);
	model_free(&m);
	model_free(&now);
}

// test: passes that only look leave no maxima
static void looking_leaves_no_trace(void **state)
{
	Model *m = new_model(POLICY_FP8, true, (Fp8Settings){ FP8_DELAYED, E5M2 });
	Batch b = batch_random(B, T, shape.vocab, 3);
	model_forward(m, b.tokens, b.targets, B, T, false);
	for (size_t i = 0; i < m->fp8->sites; i++)
		assert_true(i % FP8_SITES == FP8_W || reals(m->fp8->seen)[i] == 0);
	model_forward(m, b.tokens, b.targets, B, T, true);
	size_t seen = 0;
	for (size_t i = 0; i < m->fp8->sites; i++)
		seen += reals(m->fp8->seen)[i] > 0;
	assert_int_equal(seen, shape.layers * 4 * 2);    /* X and W of four layers */
	batch_free(&b);
	model_free(&m);
}

// test: codes follow the weights
static void train(Model *m, Optimizer *o, int steps)
{
	for (int step = 0; step < steps; step++) {
		Batch b = batch_random(B, T, shape.vocab, 3);
		timed_step(m, o, &b, MODE_TRAIN);
		batch_free(&b);
	}
}

static Model *trained(Fp8Settings s, int steps, Optimizer *o)
{
	Model *m = new_model(POLICY_FP8, true, s);
	*o = adamw_new(m, 1e-2, 0.9, 0.999, 1e-8, 0.01);
	train(m, o, steps);
	return m;
}

static void expect_gradients_of(Model *m, Model *other)
{
	Array want, got;
	gradients_of(m, &got);
	gradients_of(other, &want);
	assert_memory_equal(got.at, want.at, m->extent * sizeof(real));
}

/* a model that casts weights where it reads them is the same, from the start
 * or from the third step on */
static void weights_may_keep_no_codes(void **state)
{
	const ModelPlan none = { .drop_weight_codes = true, .drop_codes = 1 };
	for (int i = 0; i < NFP8_SCALINGS * 2; i++) {
		const Fp8Settings s = { i / 2, E5M2 };
		Optimizer o, another;
		Model *m = trained(s, 0, &o), *other = trained(s, i % 2 ? 2 : 0,
			&another);
		model_follow(other, &none);
		train(m, &o, 4);
		train(other, &another, i % 2 ? 2 : 4);
		assert_true(m->fp8->straight[in_block(m, 0, P_Q)].codes.at
			&& !other->fp8->straight[in_block(m, 0, P_Q)].codes.at);
		assert_memory_equal(other->weights.at, m->weights.at, m->extent
			* sizeof(real));
		expect_gradients_of(other, m);
		optimizer_free(&o);
		optimizer_free(&another);
		model_free(&m);
		model_free(&other);
		release(state);
	}
}

static void codes_follow_the_weights(void **state)
{
	for (int i = 0; i < NFP8_SCALINGS; i++) {
		const Fp8Settings s = { i, E5M2 };
		Optimizer o, another;
		Model *m = trained(s, 3, &o), *other = trained(s, 0, &another);
		for (size_t k = 0; k < m->extent; k++)
			reals(m->weights)[k] *= 2;
		m->ops->cast(device, other->weights, m->weights, m->extent);
		model_weights_changed(m);
		model_weights_changed(other);
		if (m->fp8->history.at) {
			m->ops->cast(device, other->fp8->history, m->fp8->history,
				FP8_WINDOW * m->fp8->sites);
			fp8_history_changed(m);
			fp8_history_changed(other);
		}
		expect_gradients_of(m, other);
		optimizer_free(&o);
		o = adamw_new(m, 1e-2, 0.9, 0.999, 1e-8, 0.01);
		train(m, &o, 1);
		train(other, &another, 1);
		expect_gradients_of(m, other);
		optimizer_free(&o);
		optimizer_free(&another);
		model_free(&m);
		model_free(&other);
		release(state);
	}
}

// test: what overflows is named
static void overflow(void *context)
{
	Model *m = new_model(POLICY_FP8, true, *(Fp8Settings *)context);
	Batch b = batch_random(B, T, shape.vocab, 3);
	Array gain = model_weight(m, in_block(m, 1, P_LN2));
	for (long i = 0; i < shape.d_model; i++)
		reals(gain)[i] = (real)3e38;
	model_weights_changed(m);
	model_forward(m, b.tokens, b.targets, B, T, true);
}

/* what f says before it ends with 1 */
static void last_words(void (*f)(void *), void *context, char *said, size_t size)
{
	FILE *file = memory_file();
	int status;
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		dup2(fileno(file), 2);
		omp_set_num_threads(1);
		on_exit(leave_at_once, NULL);
		f(context);
		exit(0);
	}
	waitpid(child, &status, 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	rewind(file);
	said[fread(said, 1, size - 1, file)] = '\0';
	fclose(file);
}

static void overflow_is_named(void **state)
{
	char said[512];
	for (int s = 0; s < NFP8_SCALINGS; s++) {
		last_words(overflow, &(Fp8Settings){ s, E5M2 }, said, sizeof said);
		if (!strstr(said, "layers.1.ffn.w1 and w3"))
			fail_msg("scaling %d: '%s'", s, said);
	}
}

// test: FP8 is refused to the JIT
static void make_for_jit(void *context)
{
	omp_set_num_threads(1);
	jit_start(device, (JitSettings){ 0 });
	new_model(POLICY_FP8, false, (Fp8Settings){ FP8_TENSOR, E5M2 });
}

static void the_jit_is_refused(void **state)
{
	assert_int_equal(exit_status(make_for_jit, NULL), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		checked(settings_are_near_bf16), checked(maxima_are_delayed),
		checked(looking_leaves_no_trace), checked(codes_follow_the_weights),
		checked(weights_may_keep_no_codes),
		checked(overflow_is_named),
		checked(the_jit_is_refused),
	};
	return run_on_cpu(tests);
}
