/* what the eager path keeps in a pass, as PyTorch's autocast does */
#include "model/model.h"
#include "ops/dry.h"
#include "tests/ops/on_cpu.h"
#include "train/step.h"

static const Shape tiny = { 50, 8, 12, 20, 3, 2, 6, 10000 };

// run a pass under a policy
static Model *after_forward(Device *d, const Shape *shape, int policy,
	bool keep)
{
	Model *m = model_new(d, shape, &policies[policy], 7);
	Batch b = batch_random(2, 8, shape->vocab, 3);
	model_forward(m, b.tokens, b.targets, b.B, b.T, keep);
	batch_free(&b);
	return m;
}

// test the types of what is saved
static void expect_type(const char *what, Array a, Type wanted)
{
	if (a.at == NULL || a.type != wanted)
		fail_msg("%s is %s, not %s", what, a.at ? type_names[a.type] : "freed",
			type_names[wanted]);
}

static void saved_types_are_autocasts(void **state)
{
	static const Type low[] = { TYPE_REAL, BF16, FP16, TYPE_REAL, BF16, BF16 };
	for (int p = 0; p < POLICY_FP8; p++) {
		Model *m = after_forward(device, &tiny, p, true);
		Type wide = p < NAUTOCAST ? TYPE_REAL : BF16,
			input = policies[p].op[OP_LINEAR].input,
			read = ops->reads(device, wide, input) ? wide : input;
		for (int layer = 0; layer < tiny.layers; layer++) {
			const Activations *s = &m->activations[layer];
			const struct { const char *what; Array a; Type type; } all[] = {
				{ "input", s->x, wide }, { "ln1", s->norm1, read },
				{ "rho", s->rho1, TYPE_REAL }, { "q", s->q, read },
				{ "k", s->k, read }, { "v", s->v, low[p] },
				{ "P", s->P, wide }, { "o", s->o, low[p] },
				{ "stream", s->x_mid, wide }, { "ln2", s->norm2, read },
				{ "gate", s->gate, low[p] }, { "up", s->up, low[p] },
				{ "h", s->h, low[p] } };
			for (size_t i = 0; i < sizeof all / sizeof *all; i++)
				expect_type(all[i].what, all[i].a, all[i].type);
			if (read != wide)
				expect_type("P, cast", s->P_cast, read);
			else
				assert_null(s->P_cast.at);
		}
		expect_type("ln_final", m->norm, read);
		expect_type("logits", m->logits, low[p]);
		expect_type("losses", m->losses, TYPE_REAL);
		model_free(&m);
	}
}

// test how long casts of weights live
static int casts_of(const Model *m)
{
	int n = 0;
	for (int i = 0; i < shape_nparameters(&tiny); i++)
		n += m->params[i].cast.at != NULL;
	return n;
}

static void casts_live_to_the_end(void **state)
{
	for (int p = 0; p < POLICY_FP8; p++)
		for (int K = 0; K <= 2; K++) {
			Model *m = after_forward(device, &tiny, p, false);
			assert_int_equal(casts_of(m), 0);
			model_recompute(m, K, K == 2);
			Batch b = batch_random(2, 8, tiny.vocab, 3);
			model_forward(m, b.tokens, b.targets, b.B, b.T, true);
			bool casts = policies[p].op[OP_LINEAR].input
				!= policies[p].parameter;
			assert_int_equal(casts_of(m), casts * (1 + (K ? 0 : 7 * 3)));
			model_backward(m, false);
			assert_int_equal(casts_of(m), 0);
			batch_free(&b);
			model_free(&m);
		}
}

static int casts;

static void counting_cast(Device *d, Array y, Array x, size_t n)
{
	casts++;
	ops->cast(d, y, x, n);
}

static void expect_casts_gone(void *model, int unit, bool backward)
{
	int blocks = unit < 1 ? 0 : unit <= tiny.layers ? unit - 1 : 3;
	if (backward)
		assert_int_equal(casts_of(model), 7 * blocks);
}

static void each_weight_is_cast_once(void **state)
{
	Ops counting = *ops;
	counting.cast = counting_cast;
	device->ops = &counting;
	Model *m = after_forward(device, &tiny, POLICY_BF16, true);
	m->hooks = (Hooks){ .self = m, .after_unit = expect_casts_gone };
	assert_int_equal(casts, 3 * (7 + 2 + 3) + 2);
	casts = 0;
	model_backward(m, false);
	assert_int_equal(casts, 3 * 2);
	model_free(&m);
	device->ops = NULL;
}

// test what casts add to a forward pass
static double forward_peak(long layers, int policy)
{
	Shape shape = { 128, 64, 512, 1344, layers, 8, 64, 10000 };
	Device *d = dry_device("cuda");
	Model *m = after_forward(d, &shape, policy, false);
	device_reset_peak(d);
	Batch b = batch_random(2, 8, shape.vocab, 3);
	model_forward(m, b.tokens, b.targets, b.B, b.T, false);
	double peak = (double)d->total_peak;
	batch_free(&b);
	model_free(&m);
	device_close(&d);
	return peak;
}

static void casts_add_to_a_forward_pass(void **state)
{
	static const int width[] = { 0, 2, 2, 0, 2, 0 };
	double C = 512, F = 1344, weights = 4 * C * C + 3 * C * F;
	for (int p = 0; p < POLICY_FP8; p++) {
		double more = forward_peak(6, p) - forward_peak(5, p),
			master = type_size(policies[p].parameter);
		if (more != (weights + 2 * C) * master + weights * width[p])
			fail_msg("%s: a block more needs %.0f bytes", policies[p].name,
				more);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { checked(saved_types_are_autocasts),
		checked(casts_live_to_the_end), checked(each_weight_is_cast_once),
		checked(casts_add_to_a_forward_pass) };
	return run_on_cpu(tests);
}
