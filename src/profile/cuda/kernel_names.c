#define _GNU_SOURCE
#include "profile/cuda/kernel_names.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"

/* from the C++ runtime; NULL: the name is none of C++ */
char *__cxa_demangle(const char *name, char *buffer, size_t *n, int *status);

// shorten a name
/* "map_any<4, cuda_sgd::{lambda(float, float)#1}, Array, DeviceScalar>(...)"
 * gives "sgd: map #1 of Array, DeviceScalar" */
static bool name_of_formula(char *text, size_t n, const char *name)
{
	const char *launcher = strstr(name, "cuda_"), *formula = strstr(name,
		"::{lambda("), *number = strchr(name, '#'), *inputs = strchr(name, '}');
	if (!launcher || !formula || !number || !inputs || launcher > formula)
		return false;
	launcher += strlen("cuda_");
	inputs += strspn(inputs, "}, ");
	snprintf(text, n, "%.*s: map #%d of %.*s", (int)(formula - launcher),
		launcher, atoi(number + 1), (int)strcspn(inputs, ">"), inputs);
	return true;
}

/* leaves out of a library's name what all of its kernels share, alignments, and
 * fp32 types after the first */
static bool name_of_gemm(char *text, size_t n, const char *name)
{
	static const char *const dull[] = { "xmma", "execute", "kernel", "5x",
		"cublas", "aligna4", "alignc4", "aligna8", "alignc8", "f32f32", "f32" };
	size_t length = 0;
	bool typed = false;
	if (strstr(name, "_xmma_gemm_") == NULL)
		return false;
	text[0] = '\0';
	// copy the words that tell kernels apart
	for (const char *at = name; *at;) {
		size_t width = strcspn(at, "_");
		bool keep = width > 0;
		for (size_t i = 0; i < sizeof dull / sizeof *dull; i++)
			if (strlen(dull[i]) == width && strncmp(at, dull[i], width) == 0) {
				keep = dull[i][0] == 'f' && !typed;
				typed |= keep;
			}
		if (keep && length < n)
			length += snprintf(text + length, n - length, "%s%.*s",
				length ? "_" : "", (int)width, at);
		at += width + (at[width] == '_');
	}
	return true;
}

// shorten a name
static void replace_all(char *text, const char *old, const char *new)
{
	assert(strlen(new) <= strlen(old));
	for (char *at = strstr(text, old); at; at = strstr(at, old)) {
		memmove(at + strlen(new), at + strlen(old), strlen(at + strlen(old)) + 1);
		memcpy(at, new, strlen(new));
	}
}

void shorten(char *text, size_t n, const char *mangled)
{
	int status;
	char *name = __cxa_demangle(mangled, NULL, NULL, &status);
	if (name == NULL) {
		if (!name_of_gemm(text, n, mangled))
			snprintf(text, n, "%s", mangled);
		return;
	}
	if (!name_of_formula(text, n, name)) {
		// cut off arguments and the type that is returned
		int depth = 0;
		replace_all(name, "(anonymous namespace)::", "");
		replace_all(name, "opcode::", "");
		char *start = name, *end = name;
		for (; *end && !(*end == '(' && depth == 0); end++) {
			depth += (*end == '<') - (*end == '>');
			if (*end == ' ' && depth == 0)
				start = end + 1;        /* after the type that it returns */
		}
		*end = '\0';
		replace_all(start, "__nv_bfloat16", "bf16");
		replace_all(start, "__half", "fp16");
		snprintf(text, n, "%s", start);
	}
	free(name);
}

// keep the short names that were made
const char *short_name(const char *mangled)
{
	static struct Name { char *mangled, *text; } *names;
	static size_t n;
	char text[256];
	for (size_t i = n; i-- > 0;)
		if (strcmp(names[i].mangled, mangled) == 0)
			return names[i].text;
	names = grow(names, n, sizeof *names);
	shorten(text, sizeof text, mangled);
	names[n] = (struct Name){ need(strdup(mangled)), need(strdup(text)) };
	return names[n++].text;
}
