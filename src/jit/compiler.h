/* compiler.h: from source to a kernel, while the program runs */
#ifndef JIT_COMPILER_H
#define JIT_COMPILER_H

#include <stdio.h>

#include "jit/kernel_plan.h"

typedef struct Bytes {
	unsigned char *at;              /* by malloc; NULL: no bytes */
	size_t n;
} Bytes;

typedef struct Compiler {
	/* all that decides about the bytes besides the source: versions,
	 * options, machine; the caller frees it. NULL: there is no compiler,
	 * and *why says so */
	char  *(*identify)(const Device *d, const char **why);
	/* writes the plan as a whole program */
	void   (*write)(FILE *f, const KernelPlan *p);
	/* bytes.at is NULL if the source does not compile; then *complaint,
	 * which the caller frees, says where */
	Bytes  (*compile)(const Device *d, const char *source, char **complaint);
	/* makes bytes callable; NULL: they are no program */
	void  *(*load)(Bytes bytes);
	void   (*unload)(void *kernel);
	/* queues the kernel; pointers and numbers in the order of plan_pointers and
	 * plan_numbers */
	void   (*launch)(Device *d, void *kernel, const KernelPlan *p,
		void *const *at,
		const double *numbers);
	/* y (C) += the sum over the rows of partial (slabs, C), in their order */
	void   (*add_slabs)(Device *d, Array y, void *partial, size_t slabs,
		size_t C);
} Compiler;

extern const Compiler c_compiler;
/* words of the shell: the command that compiled this program */
extern const char *c_compiler_command;
#ifdef HAVE_NVRTC
extern const Compiler nvrtc_compiler;
#endif
/* the compiler of the device's kind; NULL: there is none, and *why says so */
const Compiler *compiler_for(const Device *d, const char **why);
/* prints the source and the compiler's complaint (or NULL), and ends the
 * program */
_Noreturn void  compiler_failed(const char *source, const char *complaint);

#endif
