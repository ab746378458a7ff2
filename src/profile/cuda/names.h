/* names.h: readable names of kernels */
#ifndef PROFILE_CUDA_NAMES_H
#define PROFILE_CUDA_NAMES_H

#include <stddef.h>

/* of a kernel as the driver knows it; the same pointer for the same name, for
 * the life of the program */
const char *short_name(const char *mangled);
/* the same into text[n], without the memory */
void        shorten(char *text, size_t n, const char *mangled);

#endif
