#include "ops/library.h"

int32_t libsystems_version(void)
{
	return LIBSYSTEMS_VERSION;
}

#ifndef C_COMPILER
#define C_COMPILER "cc"
#endif
const char *libsystems_compiler(void)
{
	return C_COMPILER " (" __VERSION__ ")";
}

const char *libsystems_gpus(void)
{
#ifdef CUDA_ARCH_BUILT
	return CUDA_ARCH_BUILT;
#else
	return "";
#endif
}
