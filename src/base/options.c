#include "base/options.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

// find the option that argument names
/* argument: the text behind the two dashes; the name ends at an equals sign or
 * with the argument */
static const Option *find_option(const Option *options, const char *argument)
{
	size_t length = strcspn(argument, "=");
	for (const Option *o = options; o->name; o++)
		if (strlen(o->name) == length
			&& strncmp(o->name, argument, length) == 0)
			return o;
	usage_error("unknown option --%.*s (try --help)", (int)length, argument);
}

// read an integer with an optional K, M or G
static long read_integer(const Option *o, const char *text)
{
	char *end;
	errno = 0;
	long value = strtol(text, &end, 10), unit = 1;
	if (end != text && *end && end[1] == '\0') {
		const char *suffix = strchr("KMG", *end);
		if (suffix) {
			unit = 1L << 10 * (suffix - "KMG" + 1);
			end++;
		}
	}
	long low = 0, high = 0;
	bool overflow = errno != 0 || __builtin_mul_overflow(value, unit, &value);
	if (sscanf(o->expects, "%ld..%ld", &low, &high) != 2)
		die("option table: --%s lacks a range", o->name);
	if (end == text || isspace((unsigned char)*text) || *end || overflow
		|| value < low || value > high)
		usage_error("option --%s: '%s' is not an integer in %s", o->name, text,
			o->expects);
	return value;
}

// store one option's value
int options_choice(const char *choices, const char *name)
{
	size_t length = strlen(name);
	int index = 0;
	for (const char *c = choices; *c; index++) {
		size_t width = strcspn(c, "|");
		if (width == length && strncmp(c, name, length) == 0)
			return index;
		c += width + (c[width] == '|');
	}
	return -1;
}

static void store_value(const Option *o, const char *text)
{
	char *end;
	switch (o->kind) {
	case OPT_FLAG:
		if (text)
			usage_error("option --%s takes no value, got '%s'", o->name, text);
		*(bool *)o->value = true;
		break;
	case OPT_INT:
		*(long *)o->value = read_integer(o, text);
		break;
	case OPT_REAL:
		*(double *)o->value = strtod(text, &end);
		if (end == text || isspace((unsigned char)*text) || *end
			|| !isfinite(*(double *)o->value))
			usage_error("option --%s: '%s' is not a finite number", o->name,
				text);
		break;
	case OPT_TEXT:
		*(const char **)o->value = text;
		break;
	case OPT_CHOICE:
		*(int *)o->value = options_choice(o->expects, text);
		if (*(int *)o->value < 0)
			usage_error("option --%s: '%s' is not one of %s", o->name, text,
				o->expects);
		break;
	}
}

// print the help text
static void print_default(const Option *o)
{
	switch (o->kind) {
	case OPT_FLAG:
		break;
	case OPT_INT:
		printf(" [%ld]", *(long *)o->value);
		break;
	case OPT_REAL:
		printf(" [%g]", *(double *)o->value);
		break;
	case OPT_TEXT:
		if (*(const char **)o->value)
			printf(" [%s]", *(const char **)o->value);
		break;
	case OPT_CHOICE: {
		const char *choice = o->expects;
		for (int i = *(int *)o->value; i > 0; i--)
			choice = strchr(choice, '|') + 1;
		if (*(int *)o->value >= 0)
			printf(" [%.*s]", (int)strcspn(choice, "|"), choice);
		break;
	}
	}
}

static void print_help(const Option *options, const char *about)
{
	printf("%s: %s\n\noptions [default]:\n", program_name, about);
	for (const Option *o = options; o->name; o++) {
		printf("  --%s%s%s", o->name, o->kind == OPT_FLAG ? "" : " ",
			o->kind == OPT_FLAG ? "" : o->expects);
		print_default(o);
		printf("\n        %s\n", o->help);
	}
}

// move one argument before others
static void move_argument(char **argv, int to, int from)
{
	char *argument = argv[from];
	memmove(argv + to + 1, argv + to, (from - to) * sizeof *argv);
	argv[to] = argument;
}

int options_parse(const Option *options, int argc, char **argv,
	const char *about)
{
	const char *slash = strrchr(argv[0], '/');
	program_name = slash ? slash + 1 : argv[0];
	check_output_at_exit();
	int first = 1;                     /* argv[first .. i - 1] are no options */
	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--", 2) != 0)
			continue;
		move_argument(argv, first++, i);
		// stop at --, answer --help
		const char *word = argv[first - 1];
		if (strcmp(word, "--") == 0)
			return first;
		if (strcmp(word, "--help") == 0) {
			print_help(options, about);
			exit(0);
		}
		// take the option and its value from argv
		const Option *option = find_option(options, word + 2);
		const char *equals = strchr(word, '=');
		const char *text = equals ? equals + 1 : NULL;
		if (option->kind != OPT_FLAG && text == NULL) {
			if (++i == argc)
				usage_error("option --%s needs a value: %s", option->name,
					option->expects);
			text = argv[i];
			move_argument(argv, first++, i);
		}
		store_value(option, text);
	}
	return first;
}
