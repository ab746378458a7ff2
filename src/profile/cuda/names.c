#define _GNU_SOURCE
#include "profile/cuda/names.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* the C++ runtime's; NULL when name is none of C++ */
char *__cxa_demangle(const char *name, char *buffer, size_t *n, int *status);

/* "..., &cuda_softmax_forward, 2u>..." gives "softmax_forward:2" */
static bool name_of_formula(char *text, size_t n, const char *name)
{
	const char *launcher = strstr(name, "&cuda_");
	if (launcher == NULL)
		return false;
	launcher += strlen("&cuda_");
	int length = (int)strcspn(launcher, ",(<");
	const char *number = strchr(launcher, ',');
	snprintf(text, n, "%.*s:%d", length, launcher,
		number ? atoi(number + 1) : 0);
	return true;
}

static void replace_all(char *text, const char *old, const char *new)
{
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
		snprintf(text, n, "%s", mangled);
		return;
	}
	if (!name_of_formula(text, n, name)) {
		int depth = 0;
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

const char *short_name(const char *mangled)
{
	static struct Name { char *mangled, *text; } *names;
	static size_t n;
	char text[256];
	for (size_t i = n; i-- > 0;)
		if (strcmp(names[i].mangled, mangled) == 0)
			return names[i].text;
	if ((n & (n - 1)) == 0)
		names = need(realloc(names, (n ? 2 * n : 1) * sizeof *names));
	shorten(text, sizeof text, mangled);
	names[n] = (struct Name){ need(strdup(mangled)), need(strdup(text)) };
	return names[n++].text;
}
