#include "ops/formulas.h"

#include <math.h>

#include "ops/array.h"
#include "ops/dispatch.h"
#include "ops/elementary.h"

// call an elementary operation like a function
/* y[out(i)] = op(in ...) for i < n, unless *skip */
static void map_in(Device *d, Array y, Index out, size_t n, Opcode op,
	const Operand *in, const int32_t *skip)
{
	Elementary e = { .op = op, .n = n, .y = y, .out = out, .skip = skip };
	for (int k = 0; k < opcode_operands(op); k++)
		e.in[k] = in[k];
	elementary(d, &e);
}

static void fold_in(Device *d, Array y, Fold fold, size_t rows, size_t C,
	Opcode op, const Operand *in)
{
	Elementary e = { .op = op, .fold = fold, .n = rows * C, .C = C, .y = y,
		.out = index_every(1) };
	for (int k = 0; k < opcode_operands(op); k++)
		e.in[k] = in[k];
	elementary(d, &e);
}

#define MAP_TO(d, y, out, n, op, ...) \
	map_in(d, y, out, n, op, (Operand[]){ __VA_ARGS__ }, NULL)
#define MAP(d, y, n, op, ...) MAP_TO(d, y, index_every(1), n, op, __VA_ARGS__)
#define FOLD(d, y, fold, rows, C, op, ...) \
	fold_in(d, y, fold, rows, C, op, (Operand[]){ __VA_ARGS__ })

// operations of one formula
void formula_fill(Device *d, Array y, double value, size_t n)
{
	MAP(d, y, n, E_COPY, number(value));
}

void formula_cast(Device *d, Array y, Array x, size_t n)
{
	MAP(d, y, n, E_COPY, element(x));
}

void formula_add(Device *d, Array y, Array a, Array b, size_t n)
{
	MAP(d, y, n, E_ADD, element(a), element(b));
}

void formula_relu_forward(Device *d, Array y, Array x, size_t n)
{
	MAP(d, y, n, E_RELU, element(x));
}

void formula_relu_backward(Device *d, Array dx, Array dy, Array x, size_t n)
{
	MAP(d, dx, n, E_IF_POSITIVE, element(dy), element(x));
}

// RMSNorm by formulas
void formula_rmsnorm_forward(Device *d, Array y, Array rho, Array x, Array g,
	size_t rows, size_t C, double eps)
{
	size_t n = rows * C;
	Array work = elementary_scratch(d, n, "norm's intermediate");
	MAP(d, work, n, E_SQUARE, element(x));
	FOLD(d, rho, FOLD_SUM, rows, C, E_DIVIDE, element(work), number(C));
	MAP(d, rho, rows, E_INVERSE_ROOT, element(rho), number(eps));
	MAP(d, work, n, E_MULTIPLY, element(x), per_row(rho, C));
	MAP(d, y, n, E_MULTIPLY, element(work), per_column(g, C));
	device_free(d, work.at);
}

void formula_rmsnorm_backward(Device *d, Array dx, Array dg, Array dy, Array x,
	Array g, Array rho, size_t rows, size_t C)
{
	size_t n = rows * C;
	Array xhat = elementary_scratch(d, n, "normalised row"),
		v = elementary_scratch(d, n, "its gradient"),
		work = elementary_scratch(d, n, "norm's intermediate"),
		mean = elementary_scratch(d, rows, "mean");
	MAP(d, xhat, n, E_MULTIPLY, element(x), per_row(rho, C));
	MAP(d, work, n, E_MULTIPLY, element(dy), element(xhat));
	FOLD(d, dg, FOLD_COLUMNS, rows, C, E_COPY, element(work));
	MAP(d, v, n, E_MULTIPLY, element(dy), per_column(g, C));
	MAP(d, work, n, E_MULTIPLY, element(v), element(xhat));
	FOLD(d, mean, FOLD_SUM, rows, C, E_DIVIDE, element(work), number(C));
	MAP(d, work, n, E_MULTIPLY, element(xhat), per_row(mean, C));
	MAP(d, work, n, E_SUBTRACT, element(v), element(work));
	MAP(d, work, n, E_MULTIPLY, element(work), per_row(rho, C));
	MAP(d, dx, n, E_ADD, element(dx), element(work));
	device_free(d, mean.at);
	device_free(d, work.at);
	device_free(d, v.at);
	device_free(d, xhat.at);
}

// RoPE by formulas
void formula_rope(Device *d, Array y, Array x, Array cosine, Array sine,
	size_t B, size_t T, size_t H, size_t D, int direction)
{
	size_t half = D / 2, n = B * T * H * half;
	Index pairs = index_every(2);
	Index angle = { 2, { { half * H, T, half }, { 1, half, 1 } } };
	Operand even = element_at(x, pairs), odd = element_at(array_part(d, x, 1),
		pairs), c = element_at(cosine, angle), s = element_at(sine, angle);
	Array product[4];
	for (int k = 0; k < 4; k++) {
		product[k] = elementary_scratch(d, n, "RoPE's products");
		MAP(d, product[k], n, E_MULTIPLY, k % 2 ? odd : even,
			k == 0 || k == 3 ? c : s);
	}
	MAP_TO(d, y, pairs, n, direction > 0 ? E_SUBTRACT : E_ADD,
		element(product[0]), element(product[1]));
	MAP_TO(d, array_part(d, y, 1), pairs, n, direction > 0 ? E_ADD : E_SUBTRACT,
		element(product[3]), element(product[2]));
	for (int k = 4; k-- > 0;)
		device_free(d, product[k].at);
}

// softmax by formulas
/* 1 up to the diagonal of (matrices, T, T), 0 after it */
static Operand causal(size_t T)
{
	return (Operand){ AT_MOST, .at = { 1, { { 1, T, 1 } } },
		.than = { 1, { { T, T, 1 } } } };
}

void formula_softmax_forward(Device *d, Array P, Array S, double scale,
	size_t matrices, size_t T)
{
	size_t rows = matrices * T, n = rows * T;
	Array work = elementary_scratch(d, n, "scores"),
		each = elementary_scratch(d, rows, "maximum, sum");
	MAP(d, work, n, E_MULTIPLY, element(S), number(scale));
	MAP(d, work, n, E_SELECT, element(work), causal(T), number(-INFINITY));
	FOLD(d, each, FOLD_MAXIMUM, rows, T, E_COPY, element(work));
	MAP(d, work, n, E_SUBTRACT, element(work), per_row(each, T));
	MAP(d, work, n, E_EXPONENTIAL, element(work));
	FOLD(d, each, FOLD_SUM, rows, T, E_COPY, element(work));
	MAP(d, P, n, E_DIVIDE, element(work), per_row(each, T));
	device_free(d, each.at);
	device_free(d, work.at);
}

void formula_softmax_backward(Device *d, Array dS, Array dP, Array P,
	double scale, size_t matrices, size_t T)
{
	size_t rows = matrices * T, n = rows * T;
	Array work = elementary_scratch(d, n, "gradient of scores"),
		dot = elementary_scratch(d, rows, "dot");
	MAP(d, work, n, E_MULTIPLY, element(P), element(dP));
	MAP(d, work, n, E_SELECT, element(work), causal(T), number(0));
	FOLD(d, dot, FOLD_SUM, rows, T, E_COPY, element(work));
	MAP(d, work, n, E_SUBTRACT, element(dP), per_row(dot, T));
	MAP(d, work, n, E_MULTIPLY, element(P), element(work));
	MAP(d, work, n, E_SELECT, element(work), causal(T), number(0));
	MAP(d, dS, n, E_MULTIPLY, element(work), number(scale));
	device_free(d, dot.at);
	device_free(d, work.at);
}

// SwiGLU by formulas
void formula_swiglu_forward(Device *d, Array h, Array a, Array b, size_t n)
{
	Array work = elementary_scratch(d, n, "SwiGLU's intermediate");
	MAP(d, work, n, E_SIGMOID, element(a));
	MAP(d, work, n, E_MULTIPLY, element(a), element(work));
	MAP(d, h, n, E_MULTIPLY, element(work), element(b));
	device_free(d, work.at);
}

void formula_swiglu_backward(Device *d, Array da, Array db, Array dh, Array a,
	Array b, size_t n)
{
	Array s = elementary_scratch(d, n, "sigmoid"),
		work = elementary_scratch(d, n, "SwiGLU's intermediate"),
		up = elementary_scratch(d, n, "gradient of the gate");
	MAP(d, s, n, E_SIGMOID, element(a));
	MAP(d, work, n, E_MULTIPLY, element(a), element(s));
	MAP(d, up, n, E_MULTIPLY, element(dh), element(b));
	MAP(d, db, n, E_MULTIPLY, element(dh), element(work));
	MAP(d, work, n, E_SUBTRACT, number(1), element(s));
	MAP(d, work, n, E_MULTIPLY, element(a), element(work));
	MAP(d, work, n, E_ADD, number(1), element(work));
	MAP(d, work, n, E_MULTIPLY, element(s), element(work));
	MAP(d, da, n, E_MULTIPLY, element(up), element(work));
	device_free(d, up.at);
	device_free(d, work.at);
	device_free(d, s.at);
}

// cross-entropy by formulas
void formula_cross_entropy_forward(Device *d, Array losses, Array lse,
	Array logits, const int32_t *targets, size_t N, size_t V)
{
	size_t n = N * V;
	Array work = elementary_scratch(d, n, "logits"),
		most = elementary_scratch(d, N, "maximum"),
		target = elementary_scratch(d, N, "target's logit");
	Operand gathered = { MEMORY, .a = logits, .at = index_every(V),
		.ints = targets, .extent = n };
	FOLD(d, most, FOLD_MAXIMUM, N, V, E_COPY, element(logits));
	MAP(d, work, n, E_SUBTRACT, element(logits), per_row(most, V));
	MAP(d, work, n, E_EXPONENTIAL, element(work));
	FOLD(d, lse, FOLD_SUM, N, V, E_COPY, element(work));
	MAP(d, lse, N, E_LOGARITHM, element(lse));
	MAP(d, lse, N, E_ADD, element(lse), element(most));
	MAP(d, target, N, E_COPY, gathered);
	MAP(d, losses, N, E_SUBTRACT, element(lse), element(target));
	device_free(d, target.at);
	device_free(d, most.at);
	device_free(d, work.at);
}

void formula_cross_entropy_backward(Device *d, Array dlogits, Array logits,
	Array lse, const int32_t *targets, double scale, size_t N, size_t V)
{
	size_t n = N * V;
	Array work = elementary_scratch(d, n, "gradient of logits");
	Operand hit = { EQUALS, .at = { 1, { { 1, V, 1 } } }, .ints = targets,
		.than = { 1, { { V, 0, 1 } } } };
	MAP(d, work, n, E_SUBTRACT, element(logits), per_row(lse, V));
	MAP(d, work, n, E_EXPONENTIAL, element(work));
	MAP(d, work, n, E_SUBTRACT, element(work), hit);
	MAP(d, dlogits, n, E_MULTIPLY, element(work), number(scale));
	device_free(d, work.at);
}

// AdamW by formulas
void formula_adamw(Device *d, Array w, Array low, Array g, Array m, Array v,
	size_t n, const AdamWStep *step, const int32_t *skip)
{
	Array grad = elementary_scratch(d, n, "unscaled gradient"),
		work = elementary_scratch(d, n, "update");
	Operand G = element(grad), U = element(work), M = element(m),
		V = element(v), W = element(w);
	const struct { Array y; Opcode op; Operand in[2]; } all[] = {
		{ grad, E_MULTIPLY, { element(g), scalar(&step->unscale) } },
		{ w, E_MULTIPLY, { W, scalar(&step->keep) } },
		{ m, E_MULTIPLY, { M, scalar(&step->beta1) } },
		{ work, E_MULTIPLY, { G, scalar(&step->one_minus_beta1) } },
		{ m, E_ADD, { M, U } },
		{ v, E_MULTIPLY, { V, scalar(&step->beta2) } },
		{ work, E_MULTIPLY, { G, scalar(&step->one_minus_beta2) } },
		{ work, E_MULTIPLY, { U, G } },
		{ v, E_ADD, { V, U } },
		{ work, E_ROOT, { V } },
		{ work, E_ADD, { U, scalar(&step->eps) } },
		{ work, E_DIVIDE, { M, U } },
		{ work, E_MULTIPLY, { U, scalar(&step->rate) } },
		{ w, E_SUBTRACT, { W, U } },
		{ low, E_COPY, { W } },
	};
	for (size_t k = 0; k < sizeof all / sizeof *all && all[k].y.at; k++)
		map_in(d, all[k].y, index_every(1), n, all[k].op, all[k].in, skip);
	device_free(d, work.at);
	device_free(d, grad.at);
}
