/* names of kernels, shortened */
#include "profile/cuda/kernel_names.h"
#include "tests/ops/compare.h"

// test that names are short
static void names_are_short(void **state)
{
	static const char *const names[][2] = {
		{ "_Z16mma_sync_forwardI4HalfI13__nv_bfloat16ELi64ELi64EEv9Attentionb",
			"mma_sync_forward<Half<bf16>, 64, 64>" },
		{ "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage3_"
			"warpsize1x4x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas",
			"sm80_gemm_f32f32_tn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma" },
		{ "_Z7map_anyILi4EZ8cuda_sgdEUlfffE_J5Array12DeviceScalarS1_EEvS1_mPKiT0_"
			"DpT1_",
			"sgd: map #1 of Array, DeviceScalar, Array" },
		{ "_Z10map_kernelIN6opcode8MULTIPLYELi4ELi2EjEv15KernelOperationIXsrT_8"
			"operandsET2_E", "map_kernel<MULTIPLY, 4, 2, unsigned int>" },
		{ "_Z16fold_rows_kernelI3SumLi4ELi1EjEv15KernelOperationILi3ET2_E6Opcode"
			"S2_", "fold_rows_kernel<Sum, 4, 1, unsigned int>" },
		{ "_ZN8cublasLt19splitKreduce_kernelILi32ELi16EiEEvPf",
			"cublasLt::splitKreduce_kernel<32, 16, int>" },
		{ "_ZN12_GLOBAL__N_13runIfEEvPT_", "run<float>" },
		{ "memset", "memset" },
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char text[200], little[8];
		shorten(text, sizeof text, names[i][0]);
		assert_string_equal(text, names[i][1]);
		assert_string_equal(short_name(names[i][0]), names[i][1]);
		assert_ptr_equal(short_name(names[i][0]), short_name(names[i][0]));
		shorten(little, sizeof little, names[i][0]);
		assert_true(strlen(little) < sizeof little);
	}
}

TESTS(checked(names_are_short))
