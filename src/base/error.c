#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char *program_name = "systems";

static void print_line(const char *format, va_list args)
{
	fflush(stdout);
	fprintf(stderr, "%s: ", program_name);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

_Noreturn void die(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	print_line(format, args);
	exit(1);
}

_Noreturn void usage_error(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	print_line(format, args);
	exit(2);
}

void *need(void *p)
{
	if (p == NULL)
		die("out of host memory");
	return p;
}
