#include "cases/fp8_error.h"

#include <assert.h>
#include <cblas.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/random.h"
#include "ops/fp8.h"

// predict the error of a matmul
/* mean square of the error of one rounding, over that of the numbers, which are
 * normal with deviation sd, under a scale */
static double rounding_square(Type type, double sd, double scale)
{
	const int steps = 4000;
	double error = 0, size = 0;
	for (int i = 0; i < steps; i++) {
		double z = 6 * (i + 0.5) / steps, density = exp(-z * z / 2),
			x = z * sd, u = scale * type_spacing(type, x / scale);
		error += density * (x < u / 2 ? x * x : u * u / 12);
		size += density * x * x;
	}
	return error / size;
}

static double largest_of_normal(double sd, double n)
{
	return sd * sqrt(2 * log(n > 2 ? n : 2));
}

/* elements that share a scale in a matrix (rows, k) */
static double sharing(Fp8Scaling scaling, double rows, double k)
{
	return scaling == FP8_ROW ? k : scaling == FP8_BLOCK
		? fmin(rows, FP8_TILE) * fmin(k, FP8_TILE) : rows * k;
}

static double operand_square(Type type, Fp8Scaling scaling, double sd,
	double outlier, double rows, double k)
{
	double n = sharing(scaling, rows, k), own = scaling == FP8_BLOCK
		? fmin(k, FP8_TILE) : k, beside = (n - own) / (rows * k);
	if (type == BF16)
		return rounding_square(type, sd, 1);
	double usual = rounding_square(type, sd, fp8_scale(type,
		(float)largest_of_normal(sd, n)));
	return outlier == 0 ? usual : (1 - beside) * usual + beside
		* rounding_square(type, sd, fp8_scale(type, (float)outlier));
}

double fp8_error_predicted(const Fp8ErrorCase *c)
{
	return sqrt(operand_square(c->left, c->scaling, c->sd, c->outlier, c->m,
		c->k) + operand_square(c->right, c->scaling, 1, 0, c->n, c->k));
}

// draw the operands of a matmul
static double *drawn(size_t n, double sd, uint64_t seed, uint64_t stream)
{
	double *x = need(malloc(n * sizeof *x));
	for (size_t i = 0; i < n; i++)
		x[i] = (float)(sd * random_normal(seed, stream, i));
	return x;
}

static Array on_device(Device *d, const double *x, size_t n)
{
	Array a = array_new(d, n, TYPE_REAL, MEM_TEMPORARY, "operand");
	real *host = need(malloc(n * sizeof *host));
	for (size_t i = 0; i < n; i++)
		host[i] = (real)x[i];
	array_write(d, a, host, n);
	free(host);
	return a;
}

// multiply on the device
static Fp8Matrix cast_to_fp8(Device *d, Array x, size_t rows, size_t k,
	Type type, Fp8Scaling scaling, bool left)
{
	Fp8Layout layout = scaling == FP8_ROW ? FP8_ROWS : scaling != FP8_BLOCK
		? FP8_ONE : left ? FP8_VECTORS : FP8_BLOCKS;
	Fp8Cast c = { .x = x, .rows = rows, .columns = k, .scaling = scaling,
		.maxima = array_new(d, fp8_groups(scaling, rows, k), TYPE_REAL,
			MEM_TEMPORARY, "maxima"),
		.straight = { array_new(d, rows * k, type, MEM_TEMPORARY, "codes"),
			array_new(d, fp8_scales(layout, rows, k), TYPE_REAL, MEM_TEMPORARY,
				"scales"), layout, rows, k } };
	ops_for(d)->fp8_cast(d, c);
	device_free(d, c.maxima.at);
	return c.straight;
}

static void multiply_in_fp8(Device *d, Array C, Array A, Array B,
	const Fp8ErrorCase *c)
{
	Fp8Matrix a = cast_to_fp8(d, A, c->m, c->k, c->left, c->scaling, true),
		b = cast_to_fp8(d, B, c->n, c->k, c->right, c->scaling, false);
	ops_for(d)->fp8_matmul(d, C, a, b, 0);
	device_free(d, a.codes.at);
	device_free(d, a.scale.at);
	device_free(d, b.codes.at);
	device_free(d, b.scale.at);
}

static void multiply_in_bf16(Device *d, Array C, Array A, Array B,
	const Fp8ErrorCase *c)
{
	const Ops *ops = ops_for(d);
	Array a = array_new(d, c->m * c->k, BF16, MEM_TEMPORARY, "operand"),
		b = array_new(d, c->n * c->k, BF16, MEM_TEMPORARY, "operand");
	ops->cast(d, a, A, c->m * c->k);
	ops->cast(d, b, B, c->n * c->k);
	ops->matmul(d, C, a, b, (Matmul){ .m = c->m, .n = c->n, .k = c->k,
		.trans_b = true, .lda = c->k, .ldb = c->k, .ldc = c->n, .alpha = 1 });
	device_free(d, a.at);
	device_free(d, b.at);
}

// measure the error of a matmul
static double error_of_rows(const real *got, const double *want, size_t rows,
	size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < rows; i++) {
		double error = 0, size = 0;
		for (size_t j = i * n; j < (i + 1) * n; j++) {
			error += (got[j] - want[j]) * (got[j] - want[j]);
			size += want[j] * want[j];
		}
		sum += error / size;
	}
	return sqrt(sum / rows);
}

double fp8_error_measured(Device *d, const Fp8ErrorCase *c, uint64_t seed)
{
	size_t n = c->m * c->n;
	double *a = drawn(c->m * c->k, c->sd, seed, 1),
		*b = drawn(c->n * c->k, 1, seed, 2), *want = need(malloc(n
			* sizeof *want));
	real *got = need(malloc(n * sizeof *got));
	if (c->outlier != 0)
		a[c->m / 2 * c->k + c->k / 2] = c->outlier;
	cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)c->m, (int)c->n,
		(int)c->k, 1, a, (int)c->k, b, (int)c->k, 0, want, (int)c->n);
	Array A = on_device(d, a, c->m * c->k), B = on_device(d, b, c->n * c->k),
		C = array_new(d, n, TYPE_REAL, MEM_TEMPORARY, "product");
	if (c->left == BF16)
		multiply_in_bf16(d, C, A, B, c);
	else
		multiply_in_fp8(d, C, A, B, c);
	array_read(d, got, C, n);
	double error = error_of_rows(got, want, c->m, c->n);
	Array *const all[] = { &A, &B, &C };
	for (int i = 0; i < 3; i++)
		device_free(d, all[i]->at);
	free(a);
	free(b);
	free(want);
	free(got);
	return error;
}
