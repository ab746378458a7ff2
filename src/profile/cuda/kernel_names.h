/* kernel_names.h: readable names of kernels */
#ifndef PROFILE_CUDA_KERNEL_NAMES_H
#define PROFILE_CUDA_KERNEL_NAMES_H

#include <stddef.h>

/* the readable name of a kernel whose name the driver knows as `mangled`;
 * the same pointer for the same name, for the life of the program */
const char *short_name(const char *mangled);
/* writes the readable name to text[n], and keeps nothing */
void        shorten(char *text, size_t n, const char *mangled);

#endif
