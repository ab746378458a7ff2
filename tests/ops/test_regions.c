/* test_regions.c: how many parallel regions operations of the CPU begin */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "ops/cpu/cpu.h"
#include "tests/base/program.h"

// count the regions that begin
typedef void BeginRegion(void (*work)(void *), void *data, unsigned threads,
	unsigned flags);
BeginRegion GOMP_parallel;
static int regions;

void GOMP_parallel(void (*work)(void *), void *data, unsigned threads,
	unsigned flags)
{
	static BeginRegion *begin;
	if (begin == NULL)
		*(void **)&begin = dlsym(RTLD_NEXT, "GOMP_parallel");
	__atomic_add_fetch(&regions, 1, __ATOMIC_RELAXED);
	begin(work, data, threads, flags);
}

static int begun(void)
{
	int n = regions;
	regions = 0;
	return n;
}

// test: an operation begins one region
enum { ROWS = 64, H = 2, D = 8, F = 24 };
static real space[4][ROWS * 3 * H * D];

static Array part(int i)
{
	return (Array){ space[i], BF16 };
}

static void one_region(void **state)
{
	Array angles = { space[3], TYPE_REAL };
	begun();
	cpu_fused_rope(NULL, part(0), angles, angles, 1, ROWS, H, D, 1);
	assert_true(begun() <= 1);
	cpu_rope(NULL, part(0), part(1), angles, angles, 1, ROWS, H, D, 1);
	assert_true(begun() <= 1);
	cpu_fused_swiglu_forward(NULL, part(0), part(1), ROWS, F);
	assert_true(begun() <= 1);
	cpu_fused_swiglu_backward(NULL, part(0), part(1), part(2), part(3), ROWS, F);
	assert_true(begun() <= 1);
}

// test: what is short begins none
static void no_region(void **state)
{
	begun();
	round_array(BF16, space[0], ROWS * D);
	cpu_matmul(NULL, part(0), part(1), part(2), (Matmul){ .m = 4, .n = 4, .k = 4,
		.lda = 4, .ldb = 4, .ldc = 4, .alpha = 1 });
	assert_int_equal(begun(), 0);
}

TESTS(cmocka_unit_test(one_region), cmocka_unit_test(no_region))
