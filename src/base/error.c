#define _GNU_SOURCE
#include "base/error.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *program_name = "systems";

// print one line prefix: message
/* written at once: lines of several ranks must not mix */
static void print_escaped(const char *text)
{
	char *line = NULL;
	size_t length = 0;
	FILE *memory = open_memstream(&line, &length);
	FILE *to = memory ? memory : stderr;
	fprintf(to, "%s: ", program_name);
	for (const char *c = text; *c; c++)
		if (*c == '\n')
			fputs("\\n", to);
		else if ((unsigned char)*c < ' ' || *c == 127)
			fprintf(to, "\\x%02x", *c);
		else
			fputc(*c, to);
	fputc('\n', to);
	if (memory && fclose(memory) == 0)
		fwrite(line, 1, length, stderr);
	free(line);
}

// let the first thread that ends the program print
/* prints the message unless another thread has printed one; returns whether
 * this thread is the first, which ends the program */
static bool print_first_line(const char *format, va_list args)
{
	static bool printed;               /* guarded by the lock of stderr */
	static pthread_t first;
	char *text;
	fflush(stdout);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	flockfile(stderr);
	if (!printed) {
		print_escaped(text ? text : "out of host memory");
		first = pthread_self();
	}
	printed = true;
	bool is_first = pthread_equal(first, pthread_self());
	funlockfile(stderr);
	free(text);
	return is_first;
}

static _Noreturn void end_program(bool is_first, int status)
{
	while (!is_first)
		pause();
	exit(status);
}

// check standard output at the end
static void check_output(int status, void *unused)
{
	(void)unused;
	errno = 0;
	bool bad = ferror(stdout);
	if ((fflush(stdout) == 0 && !bad) || status != 0)
		return;
	fprintf(stderr, "%s: cannot write standard output: %s\n", program_name,
		errno ? strerror(errno) : "an earlier error");
	_exit(1);
}

void check_output_at_exit(void)
{
	static bool done;
	if (!done && on_exit(check_output, NULL) != 0)
		die("out of host memory");
	done = true;
}

// end the program with a message
_Noreturn void die(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	end_program(print_first_line(format, args), 1);
}

_Noreturn void die_at_once(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	print_first_line(format, args);
	_exit(1);
}

_Noreturn void usage_error(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	end_program(print_first_line(format, args), 2);
}

void *need(void *p)
{
	if (p == NULL)
		die("out of host memory");
	return p;
}
