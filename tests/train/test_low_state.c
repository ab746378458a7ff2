/* AdamW where weights and moments are bf16 */
#include "tests/ops/on_cpu.h"

#include <omp.h>

#include "train/step.h"

static const Shape tiny = { 13, 8, 18, 22, 2, 3, 6, 10000 };

// test updates that are rounded
enum { UPDATED = 1000 };

static Array drawn_in(Type type, int stream, double scale, double shift)
{
	Array a = copied(poisoned(UPDATED), UPDATED);
	a.type = type;
	for (size_t i = 0; i < UPDATED; i++)
		reals(a)[i] = (real)(shift + scale * random_truncated(9, stream, i, 3));
	round_array(type, a.at, UPDATED);
	return a;
}

static void expect_rounded(const char *what, Array got, const double *exact)
{
	for (size_t i = 0; i < UPDATED; i++) {
		double x = reals(got)[i];
		if (!(x == round_to(BF16, (float)x)
			&& fabs(x - exact[i]) <= 0.51 * type_spacing(BF16, exact[i])))
			fail_msg("%s: element %zu is %g, %g before rounding", what, i, x,
				exact[i]);
	}
}

static void states_in_bf16_are_rounded_once(void **state)
{
	const AdamWStep s = adamw_scalars(&(OptimizerSettings){ .lr = 1e-2,
		.beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .decay = 0.1 }, 3, 0.5);
	double w1[UPDATED], m1[UPDATED], v1[UPDATED];
	for (int fused = 0; fused < 2; fused++) {
		Array w = drawn_in(BF16, 1, 1, 0), g = drawn_in(BF16, 2, 1, 0),
			m = drawn_in(BF16, 3, 1, 0), v = drawn_in(BF16, 4, 0.3, 1);
		for (size_t i = 0; i < UPDATED; i++) {
			double d = (double)reals(g)[i] * s.unscale;
			m1[i] = s.beta1 * reals(m)[i] + s.one_minus_beta1 * d;
			v1[i] = s.beta2 * reals(v)[i] + s.one_minus_beta2 * d * d;
			w1[i] = reals(w)[i] * s.keep - s.rate * m1[i] / (sqrt(v1[i]) + s.eps);
		}
		const Ops *ops = ops_for(device);
		if (fused)
			ops->fused_adamw(device, w, (Array){ NULL, BF16 }, one_gradient(g), m,
				v, UPDATED, &s, NULL);
		else
			ops->adamw(device, w, (Array){ NULL, BF16 }, g, m, v, UPDATED, &s,
				NULL);
		expect_rounded("weights", w, w1);
		expect_rounded("first moments", m, m1);
		expect_rounded("second moments", v, v1);
	}
}

// test that masters keep small updates
/* an update of a gain of one is far below the spacing of bf16 */
static void masters_keep_small_updates(void **state)
{
	Batch b = { 2, 8, drawn_tokens(16, 1, 13), drawn_tokens(16, 2, 13) };
	for (int i = 0; i < 4; i++) {
		bool masters = i < 2;
		Model *m = model_new(device, &tiny, &policies[masters
			? POLICY_BF16_STREAM : POLICY_BF16_STATE], 1);
		if (i % 2)
			model_fuse(m);
		Optimizer a = adamw_new(m, 1e-5, 0.9, 0.999, 1e-8, 0);
		assert_int_equal(a.state[0].type, m->weights.type);
		assert_int_equal(m->gradients.type, BF16);
		model_forward(m, b.tokens, b.targets, b.B, b.T, true);
		model_backward(m, false);
		update_weights(m, &a);
		const real *gain = reals(model_weight(m, in_block(m, 1, P_LN2)));
		for (long j = 0; j < tiny.d_model; j++)
			assert_true((gain[j] != 1) == masters);
		optimizer_free(&a);
		model_free(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		checked(states_in_bf16_are_rounded_once),
		checked(masters_keep_small_updates),
	};
	omp_set_num_threads(1);         /* tiny loops */
	return run_on_cpu(tests);
}
