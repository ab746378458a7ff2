/* sources of kernels compile, without a GPU */
#define _GNU_SOURCE
#include "jit/cuda/nvrtc.h"
#include "jit/source.h"
#include "tests/jit/capture.h"
#include "tests/ops/compare.h"

static Capture capture;

// compile a plan for an architecture
static Bytes compiled(const KernelPlan *p, const char *architecture)
{
	char *text = NULL, *complaint = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	source_cuda(f, p);
	fclose(f);
	Bytes b = nvrtc_compile(text, architecture, &complaint);
	if (b.at == NULL)
		fail_msg("%s\n%s", text, complaint);
	free(text);
	return b;
}

static void see(Capture *c, const KernelPlan *p)
{
	Bytes b = compiled(p, "sm_90a");
	assert_true(b.n > 500);
	free(b.at);
}

// test that all operations compile
static void operations_compile(void **state)
{
	static const size_t widths[] = { 512, 50, 20000 };
	static const Type types[] = { FP32, BF16, FP16 };
	for (int what = 0; what < NRECORDED; what++) {
		capture_begin(&capture, see);
		record(&capture, what, 64 * widths[what % 3], widths[what % 3],
			types[what % 3]);
		capture_flush(&capture);
		assert_true(capture.groups < 4);
		capture_end(&capture);
	}
}

// test that older chips and errors are known
static void older_chips_compile(void **state)
{
	capture_begin(&capture, NULL);
	record(&capture, NORM_BACKWARD, 64, 96, BF16);
	capture_flush(&capture);
	free(compiled(&capture.last, "sm_80").at);
	capture_end(&capture);
}

static void errors_have_lines(void **state)
{
	char *complaint = NULL;
	Bytes b = nvrtc_compile("int x;\nnonsense;\n", "sm_90a", &complaint);
	assert_null(b.at);
	assert_non_null(strstr(complaint, "(2): error"));
	free(complaint);
}

TESTS(
	cmocka_unit_test(operations_compile),
	cmocka_unit_test(older_chips_compile),
	cmocka_unit_test(errors_have_lines))
