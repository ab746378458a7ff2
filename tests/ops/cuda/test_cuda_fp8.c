/* casts to FP8 and matmuls of it, on the GPU against the CPU */
#include "ops/cuda/cuda.h"
#include "ops/fp8.h"
#include "tests/ops/cuda/both.h"

// make the matrices of a cast on both devices
static Array device_array(Device *d, size_t n, Type type)
{
	return array_new(d, n, type, MEM_TEMPORARY, "test of fp8");
}

static Fp8Matrix device_matrix(Device *d, Type type, Fp8Layout layout,
	size_t rows, size_t k)
{
	return (Fp8Matrix){ device_array(d, rows * k, type), device_array(d,
		fp8_scales(layout, rows, k), FP32), layout, rows, k };
}

static Fp8Layout layout_of(Fp8Scaling scaling, bool left)
{
	return scaling == FP8_ROW ? FP8_ROWS : scaling != FP8_BLOCK ? FP8_ONE
		: left ? FP8_VECTORS : FP8_BLOCKS;
}

/* host (rows, columns): values, rounded to `stored` on the device */
static Fp8Cast device_cast(Device *d, const real *host, Type stored,
	size_t rows, size_t columns, Fp8Scaling scaling, Type type, bool left)
{
	Fp8Cast c = { .x = device_array(d, rows * columns, stored), .rows = rows,
		.columns = columns, .scaling = scaling, .maxima = device_array(d,
			fp8_groups(scaling, rows, columns), FP32),
		.straight = device_matrix(d, type, layout_of(scaling, left), rows,
			columns),
		.turned = device_matrix(d, type, layout_of(scaling, !left), columns,
			rows), .seen = device_array(d, 1, FP32) };
	array_write(d, c.x, host, rows * columns);
	array_write(d, c.seen, (const real[]){ 0 }, 1);
	ops_for(d)->fp8_cast(d, c);
	return c;
}

static void free_matrix(Device *d, Fp8Matrix *m)
{
	device_free(d, m->codes.at);
	device_free(d, m->scale.at);
}

static void free_cast(Device *d, Fp8Cast *c)
{
	free_matrix(d, &c->straight);
	free_matrix(d, &c->turned);
	device_free(d, c->x.at);
	device_free(d, c->maxima.at);
	device_free(d, c->seen.at);
}

// compare arrays of both devices
static void expect_equal_arrays(Array on_cpu, Array on_gpu, size_t n,
	const char *what)
{
	real *a = guarded(n * sizeof *a), *b = guarded(n * sizeof *b);
	array_read(cpu, a, on_cpu, n);
	array_read(gpu, b, on_gpu, n);
	for (size_t i = 0; i < n; i++)
		if (isnan(a[i]) ? !isnan(b[i]) : !(a[i] == b[i]))
			fail_msg("%s: element %zu of %zu is %g, expected %g", what, i, n,
				(double)b[i], (double)a[i]);
}

enum { SPOTS = 4, LAST_CODES = 256 * SPOTS };

/* a code's number, the middle to the next one, and what lies beside it */
static float spot(Type type, int i)
{
	float x = fp8_to_float(type, (uint8_t)(i / SPOTS)), next = fp8_to_float(type,
		(uint8_t)(i / SPOTS + 1)), middle = (x + next) / 2;
	if (!isfinite(x) || !isfinite(next) || x * next < 0)
		return i % 2 ? 3e4f : 3e38f;
	return i % SPOTS == 0 ? x : i % SPOTS == 1 ? middle : nextafterf(middle,
		i % SPOTS == 2 ? -INFINITY : INFINITY);
}

static void conversions_are_equal(void **state)
{
	const Type types[] = { E4M3, E5M2 };
	for (int t = 0; t < 2; t++) {
		real host[LAST_CODES], most = (real)type_max(types[t]);
		Fp8Cast c[2];
		for (int i = 0; i < LAST_CODES; i++)
			host[i] = spot(types[t], i);
		for (int k = 0; k < 2; k++) {
			Device *d = k ? gpu : cpu;
			c[k] = device_cast(d, host, FP32, 8, LAST_CODES / 8, FP8_DELAYED,
				types[t], true);
			array_write(d, c[k].maxima, &most, 1);
			c[k].given = true;
			ops_for(d)->fp8_cast(d, c[k]);
		}
		expect_equal_arrays(c[0].straight.codes, c[1].straight.codes,
			LAST_CODES, type_names[types[t]]);
		expect_equal_arrays(c[0].turned.codes, c[1].turned.codes, LAST_CODES,
			type_names[types[t]]);
		free_cast(cpu, &c[0]);
		free_cast(gpu, &c[1]);
		assert_int_equal(release_both(NULL), 0);
	}
}

// test: casts on both devices are equal
static void expect_equal_matrices(const Fp8Matrix *a, const Fp8Matrix *b,
	const char *what)
{
	expect_equal_arrays(a->codes, b->codes, a->rows * a->k, what);
	for (size_t row = 0; row < a->rows; row++)
		for (size_t k = 0; k < a->k; k += FP8_TILE) {
			size_t at = fp8_scale_at(a, row, k);
			if (k > 0 && a->layout <= FP8_ROWS)
				break;
			if (row % FP8_TILE && a->layout != FP8_ROWS
				&& a->layout != FP8_VECTORS)
				continue;
			expect_equal_arrays(array_part(cpu, a->scale, at),
				array_part(gpu, b->scale, at), 1, what);
		}
}

static real awkward(size_t i, int stream)
{
	static const real few[] = { (real)NAN, (real)INFINITY, (real)-INFINITY, 0,
		(real)1e-41, (real)-3e-7, (real)0.0048828125, 1000, -448 };
	size_t pick = random_bits(1, stream, i) % 50;
	return pick < sizeof few / sizeof *few ? few[pick]
		: (real)(3 * random_truncated(2, stream, i, 3));
}

static void casts_are_equal(void **state)
{
	static const size_t shapes[][2] = { { 1, 1 }, { 8, 8 }, { 129, 127 },
		{ 128, 256 }, { 264, 136 }, { 40, 1000 } };
	for (int i = 0; i < 6 * NFP8_SCALINGS * 4; i++) {
		const size_t *n = shapes[i / 4 / NFP8_SCALINGS];
		Type stored = i % 2 ? FP32 : BF16, type = i / 2 % 2 ? E5M2 : E4M3;
		Fp8Scaling scaling = i / 4 % NFP8_SCALINGS;
		real *host = guarded(n[0] * n[1] * sizeof *host);
		for (size_t k = 0; k < n[0] * n[1]; k++)
			host[k] = awkward(k, i);
		Fp8Cast a = device_cast(cpu, host, stored, n[0], n[1], scaling, type,
			true), b = device_cast(gpu, host, stored, n[0], n[1], scaling, type,
			true);
		expect_equal_matrices(&a.straight, &b.straight, "straight");
		expect_equal_matrices(&a.turned, &b.turned, "turned");
		expect_equal_arrays(a.seen, b.seen, 1, "seen");
		free_cast(cpu, &a);
		free_cast(gpu, &b);
		assert_int_equal(release_both(NULL), 0);
	}
}

// test: SwiGLU is cast alike on both devices
static void read_elements(Device *d, const Fp8Matrix *m, real *x)
{
	size_t n = fp8_scales(m->layout, m->rows, m->k);
	real *scale = guarded(n * sizeof *scale);
	array_read(d, x, m->codes, m->rows * m->k);
	array_read(d, scale, m->scale, n);
	for (size_t i = 0; i < m->rows * m->k; i++)
		x[i] *= scale[fp8_scale_at(m, i / m->k, i % m->k)];
}

static void expect_alike(const Fp8Matrix *a, const Fp8Matrix *b)
{
	size_t n = a->rows * a->k;
	real *x = guarded(n * sizeof *x), *y = guarded(n * sizeof *y);
	read_elements(cpu, a, x);
	read_elements(gpu, b, y);
	for (size_t i = 0; i < n; i++)
		if (!(fabs(x[i] - y[i]) <= 0.25 * fabs(x[i]) + 1e-6))
			fail_msg("element %zu of %zu is %g, expected %g", i, n,
				(double)y[i], (double)x[i]);
}

static void gated_casts_are_alike(void **state)
{
	static const size_t shapes[][2] = { { 136, 264 }, { 128, 128 }, { 17, 35 },
		{ 264, 384 } };
	for (int i = 0; i < 4 * NFP8_SCALINGS * 2; i++) {
		size_t rows = shapes[i / 2 / NFP8_SCALINGS][0],
			F = shapes[i / 2 / NFP8_SCALINGS][1], columns = i % 2 ? 2 * F : F;
		real *host = guarded(rows * columns * sizeof *host),
			*gates = guarded(rows * 2 * F * sizeof *gates);
		for (size_t k = 0; k < rows * columns; k++)
			host[k] = (real)random_truncated(1, i, k, 3);
		for (size_t k = 0; k < rows * 2 * F; k++)
			gates[k] = (real)(2 * random_truncated(2, i, k, 3));
		Fp8Cast c[2];
		for (int k = 0; k < 2; k++) {
			Device *d = k ? gpu : cpu;
			c[k] = device_cast(d, host, BF16, rows, columns, i / 2
				% NFP8_SCALINGS, E5M2, true);
			c[k].source = i % 2 ? FP8_SWIGLU_GRADIENT : FP8_SWIGLU;
			c[k].ab = device_array(d, rows * 2 * F, BF16);
			array_write(d, c[k].ab, gates, rows * 2 * F);
			ops_for(d)->fp8_cast(d, c[k]);
		}
		expect_alike(&c[0].straight, &c[1].straight);
		expect_alike(&c[0].turned, &c[1].turned);
		for (int k = 0; k < 2; k++) {
			device_free(k ? gpu : cpu, c[k].ab.at);
			free_cast(k ? gpu : cpu, &c[k]);
		}
		assert_int_equal(release_both(NULL), 0);
	}
}

// test: matmuls of exact numbers in FP8 are equal on both devices
static void multiply_on(Device *d, Array *C, const real *x, const real *w,
	const size_t n[3], Fp8Scaling scaling, Type left, Type output, double beta)
{
	Fp8Cast a = device_cast(d, x, BF16, n[0], n[2], scaling, left, true),
		b = device_cast(d, w, BF16, n[1], n[2], scaling, E4M3, false);
	*C = device_array(d, n[0] * n[1], output);
	ops_for(d)->fill(d, *C, 3, n[0] * n[1]);
	ops_for(d)->fp8_matmul(d, *C, a.straight, b.straight, beta);
	free_cast(d, &a);
	free_cast(d, &b);
}

/* -1, 0, 1 and, in each row of a block once, 1.75, in blocks that differ by a
 * factor of two: then all scales are powers of two, and sums have few bits */
static void fill_blocks(real *x, size_t rows, size_t columns, int stream)
{
	for (size_t i = 0; i < rows * columns; i++) {
		size_t row = i / columns, column = i % columns;
		double few = (double)(random_bits(1, stream, i) % 3) - 1;
		x[i] = (real)ldexp(row % FP8_TILE == column % FP8_TILE ? 1.75 : few,
			(int)(random_bits(2, stream, row / FP8_TILE * 100
				+ column / FP8_TILE) % 2));
	}
}

/* a result in bf16 may have been rounded before C was added, and again */
static void expect_results(Array on_cpu, Array on_gpu, size_t n)
{
	real *a = guarded(n * sizeof *a), *b = guarded(n * sizeof *b),
		bound = on_cpu.type == BF16 ? (real)0x1p-7 : 0;
	array_read(cpu, a, on_cpu, n);
	array_read(gpu, b, on_gpu, n);
	for (size_t i = 0; i < n; i++)
		if (!(fabs(a[i] - b[i]) <= bound * (fabs(a[i]) + 3)))
			fail_msg("element %zu of %zu is %g, expected %g", i, n,
				(double)b[i], (double)a[i]);
}

static void exact_fp8_matmuls_are_equal(void **state)
{
	static const size_t shapes[][3] = { { 16, 16, 16 }, { 128, 128, 128 },
		{ 256, 384, 640 }, { 5, 7, 9 }, { 144, 272, 400 } };
	for (int i = 0; i < 5 * NFP8_SCALINGS * 8; i++) {
		const size_t *n = shapes[i / 8 / NFP8_SCALINGS];
		Fp8Scaling scaling = i / 8 % NFP8_SCALINGS;
		real *x = guarded(n[0] * n[2] * sizeof *x),
			*w = guarded(n[1] * n[2] * sizeof *w);
		Array C[2];
		fill_blocks(x, n[0], n[2], i);
		fill_blocks(w, n[1], n[2], i + 1);
		for (int k = 0; k < 2; k++)
			multiply_on(k ? gpu : cpu, &C[k], x, w, n, scaling, i % 2 ? E5M2
				: E4M3, i / 2 % 2 ? FP32 : BF16, i / 2 % 2 && i / 4 % 2);
		expect_results(C[0], C[1], n[0] * n[1]);
		device_free(cpu, C[0].at);
		device_free(gpu, C[1].at);
		assert_int_equal(release_both(NULL), 0);
	}
}

// test: the library takes what a model multiplies
static void shapes_of_models_are_taken(void **state)
{
	static const size_t n[] = { 256, 384, 512 };
	int refused = 0;
	if (cuda_chip(gpu->state).major < 9)
		skip();
	for (int i = 0; i < NFP8_SCALINGS * 8; i++) {
		size_t before = cuda_fp8_fallbacks(gpu);
		real *x = guarded(n[0] * n[2] * sizeof *x),
			*w = guarded(n[1] * n[2] * sizeof *w);
		Array C;
		fill_blocks(x, n[0], n[2], i);
		fill_blocks(w, n[1], n[2], i + 1);
		multiply_on(gpu, &C, x, w, n, i / 8, i % 2 ? E5M2 : E4M3, i / 2 % 2
			? FP32 : BF16, i / 4 % 2);
		device_free(gpu, C.at);
		if (cuda_fp8_fallbacks(gpu) > before && ++refused)
			print_error("refused: scaling %d, %s x e4m3 to %s, beta %d\n", i / 8,
				i % 2 ? "e5m2" : "e4m3", i / 2 % 2 ? "fp32" : "bf16", i / 4 % 2);
		assert_int_equal(release_both(NULL), 0);
	}
	assert_int_equal(refused, 0);
}

// test: histories move on alike
static void histories_are_equal(void **state)
{
	enum { WINDOW = 4, SITES = 300, RANKS = 2 };
	Array maxima[2], history[2], seen[2];
	Device *both[] = { cpu, gpu };
	for (int k = 0; k < 2; k++) {
		maxima[k] = device_array(both[k], SITES, FP32);
		history[k] = device_array(both[k], WINDOW * SITES, FP32);
		seen[k] = device_array(both[k], RANKS * SITES, FP32);
		ops_for(both[k])->fill(both[k], history[k], 0, WINDOW * SITES);
	}
	for (int step = 0; step < 2 * WINDOW; step++) {
		real host[RANKS * SITES];
		for (int i = 0; i < RANKS * SITES; i++)
			host[i] = (real)fabs(random_truncated(3, step, i, 3));
		for (int k = 0; k < 2; k++) {
			array_write(both[k], seen[k], host, RANKS * SITES);
			ops_for(both[k])->fp8_advance(both[k], maxima[k], history[k],
				WINDOW, seen[k], RANKS, SITES);
		}
		expect_equal_arrays(maxima[0], maxima[1], SITES, "maxima");
		expect_equal_arrays(history[0], history[1], WINDOW * SITES, "history");
		expect_equal_arrays(seen[0], seen[1], RANKS * SITES, "seen");
	}
	for (int k = 0; k < 2; k++) {
		device_free(both[k], maxima[k].at);
		device_free(both[k], history[k].at);
		device_free(both[k], seen[k].at);
	}
}

// test: an update's codes are those of a cast
typedef struct Update {
	Array w, m, v;
	Gradients g;
	Fp8Cast cast;
	AdamWStep *step;
	int32_t *skip;
} Update;

/* normal numbers, or their magnitudes */
static Array normal(size_t n, Type type, int stream, bool magnitudes)
{
	Array a = device_array(gpu, n, type);
	real *host = guarded(n * sizeof *host);
	for (size_t i = 0; i < n; i++) {
		double x = random_truncated(7, stream, i, 4);
		host[i] = (real)(magnitudes ? fabs(x) : x);
	}
	array_write(gpu, a, host, n);
	return a;
}

static Update new_update(size_t rows, size_t columns, Fp8Scaling scaling,
	Type type, int ngradients, int32_t skip)
{
	const size_t n = rows * columns;
	const AdamWStep step = { 0.99f, 0.01f, 0.9f, 0.95f, 0.1f, 0.05f, 1e-8f,
		0.5f };
	const real most = 2;
	Update u = { normal(n, FP32, 1, false), normal(n, FP32, 2, false),
		normal(n, FP32, 3, true),
		{ .n = ngradients }, { .rows = rows, .columns = columns,
		.scaling = scaling, .given = scaling == FP8_DELAYED,
		.maxima = device_array(gpu, fp8_groups(scaling, rows, columns), FP32),
		.straight = device_matrix(gpu, E4M3, layout_of(scaling, false), rows,
			columns), .turned = device_matrix(gpu, E4M3, layout_of(scaling,
			false), columns, rows), .seen = device_array(gpu, 1, FP32) } };
	for (int i = 0; i < ngradients; i++)
		u.g.at[i] = normal(n, type, 4 + i, false);
	u.step = device_alloc(gpu, sizeof step, MEM_TEMPORARY, "step");
	device_upload(gpu, u.step, &step, sizeof step);
	u.skip = device_alloc(gpu, sizeof skip, MEM_TEMPORARY, "skip");
	device_upload(gpu, u.skip, &skip, sizeof skip);
	array_write(gpu, u.cast.seen, (const real[]){ 0 }, 1);
	array_write(gpu, u.cast.maxima, &most, 1);
	ops_for(gpu)->fill(gpu, u.cast.straight.scale, 0, fp8_scales(
		u.cast.straight.layout, rows, columns));
	ops_for(gpu)->fill(gpu, u.cast.turned.scale, 0, fp8_scales(
		u.cast.turned.layout, columns, rows));
	return u;
}

// run an update with codes, or an update and a cast
static void free_update(Update *u)
{
	for (int i = 0; i < u->g.n; i++)
		device_free(gpu, u->g.at[i].at);
	void *const all[] = { u->w.at, u->m.at, u->v.at, u->cast.maxima.at,
		u->cast.seen.at, u->step, u->skip };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		device_free(gpu, all[i]);
	free_matrix(gpu, &u->cast.straight);
	free_matrix(gpu, &u->cast.turned);
}

static void update_at_once(Update *u)
{
	ops_for(gpu)->fp8_adamw(gpu, u->w, u->g, u->m, u->v, u->step, u->skip,
		u->cast);
}

static void update_and_cast(Update *u)
{
	const size_t n = u->cast.rows * u->cast.columns;
	u->cast.x = device_array(gpu, n, BF16);
	ops_for(gpu)->fused_adamw(gpu, u->w, u->cast.x, u->g, u->m, u->v, n, u->step,
		u->skip);
	ops_for(gpu)->fp8_cast(gpu, u->cast);
	device_free(gpu, u->cast.x.at);
}

// compare what an update wrote
static void expect_same_array(Array a, Array b, size_t n, const char *what)
{
	real *x = guarded(n * sizeof *x), *y = guarded(n * sizeof *y);
	array_read(gpu, x, a, n);
	array_read(gpu, y, b, n);
	if (memcmp(x, y, n * sizeof *x) != 0)
		fail_msg("%s: not that of an update and a cast", what);
}

static void expect_same_matrix(const Fp8Matrix *a, const Fp8Matrix *b,
	const char *what)
{
	expect_same_array(a->codes, b->codes, a->rows * a->k, what);
	expect_same_array(a->scale, b->scale, fp8_scales(a->layout, a->rows, a->k),
		what);
}

static void updates_write_the_codes_of_casts(void **state)
{
	static const size_t shapes[][2] = { { 8, 8 }, { 128, 256 }, { 264, 136 },
		{ 40, 1000 } };
	for (int i = 0; i < 4 * 2 * 2 * 3; i++) {
		const size_t *n = shapes[i / 12];
		Update u[2];
		for (int k = 0; k < 2; k++) {
			u[k] = new_update(n[0], n[1], i % 2 ? FP8_BLOCK : FP8_DELAYED,
				i / 2 % 2 ? BF16 : FP32, 1 + i / 4 % 3, 0);
			(k ? update_and_cast : update_at_once)(&u[k]);
		}
		expect_same_array(u[0].w, u[1].w, n[0] * n[1], "w");
		expect_same_array(u[0].m, u[1].m, n[0] * n[1], "m");
		expect_same_array(u[0].v, u[1].v, n[0] * n[1], "v");
		expect_same_array(u[0].cast.seen, u[1].cast.seen, 1, "seen");
		expect_same_matrix(&u[0].cast.straight, &u[1].cast.straight, "straight");
		expect_same_matrix(&u[0].cast.turned, &u[1].cast.turned, "turned");
		free_update(&u[0]);
		free_update(&u[1]);
		assert_int_equal(release_both(NULL), 0);
	}
}

static Fp8Cast with_x(Fp8Cast c, Array x)
{
	c.x = x;
	return c;
}

static void skipped_updates_write_nothing(void **state)
{
	Update u = new_update(128, 136, FP8_DELAYED, FP32, 1, 1),
		same = new_update(128, 136, FP8_DELAYED, FP32, 1, 1);
	ops_for(gpu)->fp8_cast(gpu, with_x(u.cast, u.w));
	ops_for(gpu)->fp8_cast(gpu, with_x(same.cast, u.w));
	update_at_once(&u);
	expect_same_array(u.w, same.w, 128 * 136, "w");
	expect_same_array(u.m, same.m, 128 * 136, "m");
	expect_same_array(u.cast.seen, same.cast.seen, 1, "seen");
	expect_same_matrix(&u.cast.straight, &same.cast.straight, "straight");
	free_update(&u);
	free_update(&same);
}

TESTS_BETWEEN(open_both, close_both,
	on_gpu(conversions_are_equal),
	on_gpu(casts_are_equal),
	on_gpu(gated_casts_are_alike),
	on_gpu(exact_fp8_matmuls_are_equal),
	on_gpu(shapes_of_models_are_taken),
	on_gpu(histories_are_equal),
	on_gpu(updates_write_the_codes_of_casts),
	on_gpu(skipped_updates_write_nothing))
