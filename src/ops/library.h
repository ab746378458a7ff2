/* library.h: which libsystems.so this is, for programs that link with it */
#ifndef OPS_LIBRARY_H
#define OPS_LIBRARY_H

#include <stdint.h>

/* of these headers: 10000 major + 100 minor + patch. Functions of one major
 * version keep their arguments and structures */
#define LIBSYSTEMS_VERSION 20100

/* the same of the library that is loaded */
int32_t libsystems_version(void);
/* the compiler, in one line of English */
const char *libsystems_compiler(void);
/* the architecture of the GPUs for which there are kernels, such as sm_90a; "":
 * there are none */
const char *libsystems_gpus(void);

#endif
