#include "cases/fp8_gemm.h"

#include "ops/fp8.h"

// make a cast into both copies
static Fp8Matrix empty_matrix(Device *d, Type type, Fp8Scaling by, bool left,
	size_t rows, size_t k)
{
	Fp8Layout layout = by == FP8_ROW ? FP8_ROWS : by != FP8_BLOCK ? FP8_ONE
		: left ? FP8_VECTORS : FP8_BLOCKS;
	return (Fp8Matrix){ array_new(d, rows * k, type, MEM_TEMPORARY, "codes"),
		array_new(d, fp8_scales(layout, rows, k), TYPE_REAL, MEM_TEMPORARY,
			"scales"), layout, rows, k };
}

/* a cast of x (rows, k) in both forms */
static Fp8Cast both_forms(Device *d, Array x, Type type, Fp8Scaling by,
	bool left, size_t rows, size_t k)
{
	return (Fp8Cast){ .x = x, .rows = rows, .columns = k, .scaling = by,
		.straight = empty_matrix(d, type, by, left, rows, k),
		.turned = empty_matrix(d, type, by, left, k, rows),
		.maxima = array_new(d, fp8_groups(by, rows, k), TYPE_REAL,
			MEM_TEMPORARY, "maxima") };
}

// make a matmul of FP8 and free it
void fp8_gemm_new(Device *d, Fp8Gemm *g, Fp8Scaling by, Type left, Type output,
	uint64_t seed)
{
	g->device = d;
	g->A = array_new(d, g->m * g->k, BF16, MEM_TEMPORARY, "A");
	g->B = array_new(d, g->n * g->k, BF16, MEM_TEMPORARY, "B");
	g->C = array_new(d, g->m * g->n, output, MEM_TEMPORARY, "C");
	ops_for(d)->draw(d, g->A, g->m * g->k, 1, 4, seed, 1, 0);
	ops_for(d)->draw(d, g->B, g->n * g->k, 1, 4, seed, 2, 0);
	g->left = both_forms(d, g->A, left, by, true, g->m, g->k);
	g->right = both_forms(d, g->B, E4M3, by, false, g->n, g->k);
	ops_for(d)->fp8_cast(d, g->right);
}

void fp8_gemm_free(Fp8Gemm *g)
{
	void *const all[] = { g->A.at, g->B.at, g->C.at, g->left.maxima.at,
		g->left.straight.codes.at, g->left.straight.scale.at,
		g->left.turned.codes.at, g->left.turned.scale.at, g->right.maxima.at,
		g->right.straight.codes.at, g->right.straight.scale.at,
		g->right.turned.codes.at, g->right.turned.scale.at };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		device_free(g->device, all[i]);
}

// queue a matmul of FP8 and its cast
void fp8_gemm_cast(void *gemm)
{
	const Fp8Gemm *g = gemm;
	ops_for(g->device)->fp8_cast(g->device, g->left);
}

void fp8_gemm_multiply(void *gemm)
{
	const Fp8Gemm *g = gemm;
	ops_for(g->device)->fp8_matmul(g->device, g->C, g->left.straight,
		g->right.straight, 0);
}
