#define _GNU_SOURCE
/* training: named failures, repeatability, learning, AdamW, initial weights */
#include "tests/ops/on_cpu.h"

#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include "train/step.h"

static const Shape tiny = { 13, 8, 18, 22, 2, 3, 6, 10000 };

// capture what a child process writes to stderr
static int stderr_of(char *text, size_t size, void (*f)(void *), void *context)
{
	int ends[2], status = 0;
	size_t n = 0;
	assert_int_equal(pipe(ends), 0);
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		omp_set_num_threads(1);
		f(context);
		_exit(0);
	}
	close(ends[1]);
	for (ssize_t got; (got = read(ends[0], text + n, size - 1 - n)) > 0;)
		n += got;
	text[n] = '\0';
	close(ends[0]);
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// test that the first bad tensor is named
typedef struct Plant {
	const char *parameter;
	double value;
	bool everywhere;
	const char *named;              /* what the message must contain */
} Plant;

static void run_planted(void *context)
{
	const Plant *plant = context;
	const int32_t tokens[] = { 3, 1, 4, 1, 5, 9 };
	Model *m = model_new(device, &tiny, &policies[POLICY_FP32], 1);
	for (int i = 0; i < shape_nparameters(&tiny); i++) {
		Parameter p = shape_parameter(&tiny, i);
		size_t n = plant->everywhere ? p.count : 1;
		if (strcmp(p.name, plant->parameter) == 0)
			m->ops->fill(m->device, model_weight(m, i), plant->value, n);
	}
	model_forward(m, tokens, tokens + 1, 1, 5, true);
}

static void first_bad_tensor_is_named(void **state)
{
	Plant plants[] = {
		{ "layers.1.ffn.w3.weight", 0, false, "" },
		{ "layers.1.ffn.w3.weight", NAN, false, "layers.1.ffn.w3.weight (" },
		{ "lm_head.weight", INFINITY, false, "lm_head.weight (1 of 234" },
		{ "layers.0.ffn.w1.weight", 3e38, true, "layers.0.ffn.w1 (" },
		{ "layers.1.attn.v_proj.weight", 3e38, true, "layers.1.attn.v (" },
	};
	char text[512];
	for (size_t i = 0; i < sizeof plants / sizeof *plants; i++) {
		int status = stderr_of(text, sizeof text, run_planted, &plants[i]);
		if (status != (i > 0) || !strstr(text, plants[i].named))
			fail_msg("%g in %s: exit %d, '%s'", plants[i].value,
				plants[i].parameter, status, text);
	}
}

// train one step
static double train_step(Model *m, Optimizer *a, const Batch *b)
{
	double loss = model_forward(m, b->tokens, b->targets, b->B, b->T, true);
	model_backward(m, false);
	update_weights(m, a);
	return loss;
}

// test that training repeats bit for bit
enum { STEPS = 4 };

static void record_run(Array *after, const Policy *policy, uint64_t seed)
{
	const Shape shape = { 101, 16, 96, 160, 2, 3, 32, 10000 };
	Batch b = { 4, 16, drawn_tokens(64, 1, 101), drawn_tokens(64, 2, 101) };
	Model *m = model_new(device, &shape, policy, seed);
	Optimizer a = adamw_new(m, 1e-2, 0.9, 0.999, 1e-8, 0.01);
	for (int step = 0; step < STEPS; step++) {
		train_step(m, &a, &b);
		after[step] = copied(m->weights, m->extent);
	}
	optimizer_free(&a);
	model_free(&m);
}

static void training_repeats(void **state)
{
	const Shape shape = { 101, 16, 96, 160, 2, 3, 32, 10000 };
	size_t n = shape_extent(&shape);
	for (int precision = 0; precision < NPOLICIES; precision++) {
		Array one[STEPS], two[STEPS], other[STEPS];
		record_run(one, &policies[precision], 1);
		record_run(two, &policies[precision], 1);
		record_run(other, &policies[precision], 2);
		for (int step = 0; step < STEPS; step++)
			expect_same(policies[precision].name, two[step], one[step], n);
		assert_memory_not_equal(one[0].at, other[0].at, n * sizeof(real));
	}
}

// test that a batch is learned, and no more than can be
static double learned_loss(const Batch *b, const Policy *policy)
{
	int threads = omp_get_max_threads();
	omp_set_num_threads(1);                 /* tiny loops */
	Model *m = model_new(device, &tiny, policy, 1);
	Optimizer a = adamw_new(m, 1e-2, 0.9, 0.999, 1e-8, 0.01);
	double loss = 0;
	for (int step = 0; step < 150; step++)
		loss = train_step(m, &a, b);
	optimizer_free(&a);
	model_free(&m);
	omp_set_num_threads(threads);
	return loss;
}

static void a_batch_is_learned(void **state)
{
	enum { LENGTH = 8, TOKENS = 2 * LENGTH };
	static int32_t tokens[TOKENS] = {
		3, 1, 4, 1, 5, 9, 2, 6, /**/ 3, 1, 4, 1, 7, 0, 7, 12 };
	static int32_t targets[TOKENS] = {
		1, 4, 1, 5, 9, 2, 6, 5, /**/ 1, 4, 1, 7, 0, 7, 12, 1 };
	Batch b = { 2, LENGTH, tokens, targets };
	double bound = 2 * log(2) / TOKENS;
	static const double most[] = { 1.5, 1.5, 1.5, 1.5, 1.5, 2, 2 };
	for (int precision = 0; precision < NPOLICIES; precision++) {
		double loss = learned_loss(&b, &policies[precision]);
		if (!(loss >= bound * (1 - 1e-5) && loss < bound * most[precision]))
			fail_msg("%s: loss %.5f, bound %.5f", policies[precision].name,
				loss, bound);
	}
}

// test gradients in bf16
static Model *model_in_bf16(bool fused, bool rounds)
{
	Model *m = model_new(device, &tiny, &policies[POLICY_BF16], 1);
	if (fused)
		model_fuse(m);
	if (rounds)
		model_set_gradient_type(m, BF16);
	return m;
}

static Optimizer optimizer_of(const Model *m, bool adam)
{
	return adam ? adamw_new(m, 1e-2, 0.9, 0.999, 1e-8, 0.01)
		: sgd_new(m, 0.1, 0.9);
}

static void pass_both(Model *m[2], Batch b, bool accumulate)
{
	for (int i = 0; i < 2; i++) {
		model_forward(m[i], b.tokens, b.targets, b.B, b.T, true);
		model_backward(m[i], accumulate);
	}
}

static void update_alike(Model *m[2], Optimizer o[2])
{
	for (int i = 0; i < 2; i++)
		update_weights(m[i], &o[i]);
	expect_same("weight", m[1]->weights, m[0]->weights, m[0]->extent);
}

static void free_both(Model *m[2], Optimizer o[2])
{
	for (int i = 0; i < 2; i++) {
		optimizer_free(&o[i]);
		model_free(&m[i]);
	}
}

static void check_rounded(bool fused, bool adam, Batch b)
{
	Model *m[2] = { model_in_bf16(fused, false), model_in_bf16(fused, true) };
	Optimizer o[2] = { optimizer_of(m[0], adam), optimizer_of(m[1], adam) };
	size_t n = m[0]->extent;
	for (int pass = 0; pass < 2; pass++) {
		pass_both(m, b, pass > 0);
		Array wide = copied(m[0]->gradients, n);
		round_array(BF16, m[0]->gradients.at, n);
		assert_memory_not_equal(wide.at, m[0]->gradients.at, n * sizeof(real));
		expect_same("gradient", m[1]->gradients, m[0]->gradients, n);
	}
	update_alike(m, o);
	free_both(m, o);
}

static void bf16_gradients_are_rounded(void **state)
{
	Batch b = batch_random(3, 7, tiny.vocab, 1);
	for (int i = 0; i < 4; i++)
		check_rounded(i & 1, i & 2, b);
	batch_free(&b);
}

static double apart(Array a, Array b, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += pow((double)reals(a)[i] - reals(b)[i], 2);
	return sqrt(sum);
}

static void bf16_gradients_train(void **state)
{
	Batch b = batch_random(3, 7, tiny.vocab, 1);
	for (int fused = 0; fused < 2; fused++) {
		Array after[2], start = { NULL, FP32 };
		double loss[2];
		size_t n = 0;
		for (int i = 0; i < 2; i++) {
			Model *m = model_in_bf16(fused, i);
			Optimizer o = optimizer_of(m, true);
			n = m->extent;
			start = copied(m->weights, n);
			for (int step = 0; step < 20; step++)
				loss[i] = train_step(m, &o, &b);
			after[i] = copied(m->weights, n);
			optimizer_free(&o);
			model_free(&m);
		}
		double gap = apart(after[1], after[0], n)
			/ apart(after[0], start, n);
		if (!(gap > 0 && gap < 0.02 && fabs(loss[1] / loss[0] - 1) < 0.02))
			fail_msg("%s: weights %.3g of their way apart, losses %g and %g",
				fusion_names[fused], gap, loss[0], loss[1]);
	}
	batch_free(&b);
}

static Array drawn_in_bf16(size_t n, int stream)
{
	Array a = drawn(n, stream, 0, 1);
	round_array(BF16, a.at, n);
	a.type = BF16;
	return a;
}

static void check_sum(bool adam, Batch b)
{
	Model *m[2] = { model_in_bf16(true, false), model_in_bf16(true, true) };
	Optimizer o[2] = { optimizer_of(m[0], adam), optimizer_of(m[1], adam) };
	size_t n = m[0]->extent;
	assert_true(n > m[0]->count);
	pass_both(m, b, false);                 /* makes room for gradients */
	Array first = drawn_in_bf16(n, 1), second = drawn_in_bf16(n, 2);
	o[1].sums = (Gradients){ 3, { first, second, m[1]->gradients } };
	o[1].gradients = m[1]->gradients;
	for (size_t i = 0; i < n; i++) {
		real sum = reals(first)[i] + reals(second)[i];
		reals(m[0]->gradients)[i] = sum + reals(m[1]->gradients)[i];
	}
	update_alike(m, o);
	expect_same("copy", m[1]->compute_weights, m[0]->compute_weights, n);
	free_both(m, o);
}

static void updates_sum_gradients(void **state)
{
	Batch b = batch_random(3, 7, tiny.vocab, 1);
	check_sum(false, b);
	check_sum(true, b);
	batch_free(&b);
}

static double gradient_norm(const Model *m)
{
	double sum = 0;
	for (size_t i = 0; i < m->extent; i++) {
		double g = reals(m->gradients)[i] / m->loss_scale;
		sum += g * g;
	}
	return sqrt(sum);
}

static void check_clipped(bool fused, bool clips)
{
	Batch b = batch_random(3, 7, tiny.vocab, 1);
	Model *m = model_new(device, &tiny, &policies[POLICY_FP32], 1);
	Optimizer o = sgd_new(m, 1, 0);
	if (fused)
		model_fuse(m);
	m->loss_scale = 1024;
	model_forward(m, b.tokens, b.targets, b.B, b.T, true);
	model_backward(m, false);
	double norm = gradient_norm(m), by = clips ? 0.25 : 1;
	o.settings.clip = clips ? norm / 4 : 2 * norm;
	Expected *want = expected(m->extent);
	for (size_t i = 0; i < m->extent; i++) {
		double w = reals(m->weights)[i],
			step = by * reals(m->gradients)[i] / m->loss_scale;
		want[i] = rounded(w - step, fabs(w) + 100 * fabs(step), 2);
	}
	update_weights(m, &o);
	expect_close("weights", m->weights, want, m->extent);
	optimizer_free(&o);
	model_free(&m);
	batch_free(&b);
}

static void updates_clip_gradients(void **state)
{
	for (int i = 0; i < 4; i++)
		check_clipped(i % 2, i / 2);
}

// test AdamW against its equations
typedef struct Scalar {
	double w, m, v, size;           /* size: m with every term positive */
	double error;                   /* bound on the error of the fp32 w */
} Scalar;

static void scalar_adamw(Scalar *s, double g, OptimizerSettings a, long t)
{
	double rate = a.lr * sqrt(1 - pow(a.beta2, t)) / (1 - pow(a.beta1, t));
	s->w -= a.lr * a.decay * s->w;
	s->m = a.beta1 * s->m + (1 - a.beta1) * g;
	s->v = a.beta2 * s->v + (1 - a.beta2) * g * g;
	s->size = a.beta1 * s->size + (1 - a.beta1) * fabs(g);
	double factor = rate / (sqrt(s->v) + a.eps), change = factor * s->m;
	s->w -= change;
	s->error += EPS * (3 * fabs(s->w) + factor * s->size * 4 * t
		+ fabs(change) * (2 * t + 6));
}

static void draw_gradients(Array g, size_t n, int step)
{
	for (size_t i = 0; i < n; i++) {
		double z = random_normal(1, 50 + step, i);
		reals(g)[i] = (real)(i % 13 == 12 ? 0 : z * pow(10, -(double)(i % 13)));
	}
}

static void expect_scalars(const Optimizer *a, Array w, const Scalar *s, size_t n)
{
	Expected *want = expected(n);
	long t = a->t;
	for (size_t i = 0; i < n; i++)
		want[i] = rounded(s[i].m, s[i].size, 4.0 * t);
	expect_close("first moment", a->state[0], want, n);
	for (size_t i = 0; i < n; i++)
		want[i] = rounded(s[i].v, s[i].v, 5.0 * t);
	expect_close("second moment", a->state[1], want, n);
	for (size_t i = 0; i < n; i++)
		want[i] = (Expected){ s[i].w, s[i].error };
	expect_close("weight", w, want, n);
}

static void adamw_follows_its_equations(void **state)
{
	const int32_t token = 1;
	const Shape whole = { 16, 8, 64, 64, 1, 2, 32, 10000 };
	Model *model = model_new(device, &whole, &policies[POLICY_FP32], 1);
	Optimizer a = adamw_new(model, 0.1, 0.9, 0.999, 1e-8, 0.1);
	size_t n = model->count;
	assert_int_equal(n, model->extent);
	Scalar *s = guarded(n * sizeof *s);
	for (size_t i = 0; i < n; i++)
		s[i] = (Scalar){ .w = reals(model->weights)[i] };
	model_forward(model, &token, &token, 1, 1, true);
	model_backward(model, false);           /* makes room for gradients */
	for (int step = 1; step <= 5; step++) {
		draw_gradients(model->gradients, n, step);
		update_weights(model, &a);
		assert_int_equal(a.t, step);
		for (size_t i = 0; i < n; i++)
			scalar_adamw(&s[i], reals(model->gradients)[i], a.settings, a.t);
		expect_scalars(&a, model->weights, s, n);
	}
	optimizer_free(&a);
	model_free(&model);
}

static void sgd_follows_its_equations(void **state)
{
	const int32_t token = 1;
	const Shape whole = { 16, 8, 64, 64, 1, 2, 32, 10000 };
	for (int heavy = 0; heavy < 2; heavy++) {
		Model *m = model_new(device, &whole, &policies[POLICY_FP32], 1);
		Optimizer o = sgd_new(m, 0.1, heavy ? 0.9 : 0);
		size_t n = m->count;
		assert_true((o.state[0].at != NULL) == heavy);
		double *w = guarded(n * sizeof *w), *v = guarded(n * sizeof *v);
		for (size_t i = 0; i < n; i++)
			w[i] = reals(m->weights)[i], v[i] = 0;
		model_forward(m, &token, &token, 1, 1, true);
		model_backward(m, false);           /* makes room for gradients */
		Expected *want = expected(n);
		for (int step = 0; step < 4; step++) {
			draw_gradients(m->gradients, n, step);
			update_weights(m, &o);
			for (size_t i = 0; i < n; i++) {
				v[i] = (heavy ? 0.9 : 0) * v[i] + reals(m->gradients)[i];
				w[i] -= 0.1 * v[i];
				want[i] = rounded(w[i], fabs(w[i]) + 10, 8);
			}
			expect_close("weight", m->weights, want, n);
		}
		optimizer_free(&o);
		model_free(&m);
	}
}

// test the initial weights
static const Shape drawn_shape = { 200, 8, 64, 160, 2, 2, 32, 10000 };

static void check_distribution(const Parameter *p, const real *w, double sd)
{
	double phi = exp(-4.5) / sqrt(2 * M_PI), inside = erf(3 / sqrt(2));
	double mean = 0, square = 0, largest = 0, n = p->count;
	for (size_t i = 0; i < p->count; i++) {
		mean += w[i] / n;
		square += (double)w[i] * w[i] / n;
		largest = fmax(largest, fabs(w[i]));
	}
	double kept = square / (sd * sd * (1 - 6 * phi / inside));
	if (!(fabs(mean) <= 5 * sd / sqrt(n) && fabs(kept - 1) <= 5 * sqrt(2 / n)))
		fail_msg("%s: mean %g, variance %g of its value", p->name, mean, kept);
	if (!(largest <= 3 * sd * (1 + EPS) && largest > 2.5 * sd))
		fail_msg("%s: largest is %g sd", p->name, largest / sd);
}

static double correlation(const Model *m, BlockParameter a, BlockParameter b)
{
	int i = shape_block_parameter(&m->shape, 1, a);
	int j = shape_block_parameter(&m->shape, 1, b);
	const real *x = model_weight(m, i).at, *y = model_weight(m, j).at;
	double xy = 0, xx = 0;
	for (size_t k = 0; k < shape_parameter(&m->shape, i).count; k++) {
		xy += (double)x[k] * y[k];
		xx += (double)x[k] * x[k];
	}
	return xy / xx;
}

static void initial_weights_are_as_stated(void **state)
{
	Model *m = model_new(device, &drawn_shape, &policies[POLICY_FP32], 1);
	for (int i = 0; i < shape_nparameters(&drawn_shape); i++) {
		Parameter p = shape_parameter(&drawn_shape, i);
		const real *w = model_weight(m, i).at;
		double sd = i == 0 ? 1 : sqrt(2.0 / (p.rows + p.columns));
		for (size_t j = 0; p.rows == 1 && j < p.count; j++)
			assert_true(w[j] == 1);
		if (p.rows > 1)
			check_distribution(&p, w, sd);
	}
	assert_true(fabs(correlation(m, P_Q, P_K)) < 5.0 / drawn_shape.d_model);
	assert_true(fabs(correlation(m, P_W1, P_W3)) < 5.0 / drawn_shape.d_model);
	model_free(&m);
}

static void initial_weights_ignore_threads(void **state)
{
	int before = omp_get_max_threads();
	Array weights[3];
	for (int threads = 1; threads <= 3; threads++) {
		omp_set_num_threads(threads);
		Model *m = model_new(device, &drawn_shape, &policies[POLICY_FP32], 1);
		weights[threads - 1] = copied(m->weights, m->extent);
		expect_same("weights drawn by threads", weights[threads - 1],
			weights[0], m->extent);
		model_free(&m);
	}
	omp_set_num_threads(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		checked(first_bad_tensor_is_named), checked(training_repeats),
		checked(a_batch_is_learned), checked(bf16_gradients_are_rounded),
		checked(bf16_gradients_train), checked(updates_sum_gradients),
		checked(updates_clip_gradients),
		checked(adamw_follows_its_equations),
		checked(sgd_follows_its_equations),
		checked(initial_weights_are_as_stated),
		checked(initial_weights_ignore_threads),
	};
	return run_on_cpu(tests);
}
