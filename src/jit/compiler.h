/* compiler.h: from source to a kernel, while the program runs */
#ifndef JIT_COMPILER_H
#define JIT_COMPILER_H

#include <stdio.h>

#include "jit/plan.h"

typedef struct Bytes {
	unsigned char *at;              /* malloc's; NULL: there are none */
	size_t n;
} Bytes;

typedef struct Compiler {
	/* what else decides on the bytes: versions, options, machine; to be freed.
	 * NULL: there is no compiler, and *why says so */
	char  *(*identify)(const Device *d, const char **why);
	/* a whole program */
	void   (*write)(FILE *f, const Plan *p);
	/* at NULL: it does not compile, and *complaint, to be freed, says where */
	Bytes  (*compile)(const Device *d, const char *source, char **complaint);
	/* NULL: they are no program */
	void  *(*load)(Bytes bytes);
	void   (*unload)(void *kernel);
	/* pointers and numbers as plan_pointers and plan_numbers have them */
	void   (*launch)(Device *d, void *kernel, const Plan *p, void *const *at,
		const double *numbers);
	/* y (C) += the sum of the rows of partial (slabs, C) */
	void   (*add_slabs)(Device *d, Array y, void *partial, size_t slabs,
		size_t C);
} Compiler;

extern const Compiler c_compiler;
#ifdef HAVE_NVRTC
extern const Compiler nvrtc_compiler;
#endif
/* the device's; NULL: there is none, and *why says so */
const Compiler *compiler_for(const Device *d, const char **why);
/* ends the program with the source; complaint: or NULL */
_Noreturn void  compiler_failed(const char *source, const char *complaint);

#endif
