#include "jit/compiler.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

const Compiler *compiler_for(const Device *d, const char **why)
{
	if (strcmp(d->backend->name, "cpu") == 0)
		return &c_compiler;
#ifdef HAVE_NVRTC
	return &nvrtc_compiler;
#endif
	*why = "this program was built without NVRTC";
	return NULL;
}

// end with the text of a source
void compiler_failed(const char *source, const char *complaint)
{
	int line = 1;
	for (const char *at = source; *at; line++) {
		int n = (int)strcspn(at, "\n");
		fprintf(stderr, "%4d  %.*s\n", line, n, at);
		at += n + (at[n] == '\n');
	}
	const char *error = complaint ? strstr(complaint, "error") : NULL;
	while (error && error > complaint && error[-1] != '\n')
		error--;
	int n = error ? (int)strcspn(error, "\n") : 0;
	die("a compiled kernel (above) is no program: %.*s", n ? n : 30,
		n ? error : "the compiler does not say why");
}
