#define _GNU_SOURCE
#include "bench/peer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/error.h"

static bool fits(const char *only, const char *name)
{
	return only == NULL || strcmp(only, name) == 0;
}

bool peer_wanted(const PeerFilter *only, const char *impl, const char *size,
	const char *precision)
{
	return fits(only->impl, impl) && fits(only->size, size)
		&& fits(only->precision, precision);
}

// read words and numbers of an answer
static bool has_word(const char *words, const char *word)
{
	size_t n = strlen(word);
	for (const char *at = words; (at = strstr(at, word)); at += n)
		if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
			return true;
	return false;
}

/* inf, or not a number */
static bool is_not_finite(const char *value)
{
	char *end;
	double x = strtod(value, &end);
	return end != value && *end == '\0' && !isfinite(x);
}

static void empty(Row *row, const char *columns)
{
	char column[64];
	for (const char *at = columns; *at; at += strcspn(at, " "),
		at += strspn(at, " ")) {
		snprintf(column, sizeof column, "%.*s", (int)strcspn(at, " "), at);
		row_set(row, column, "-");
	}
}

// set columns from a line of an answer
/* true: the line was an answer; columns that it leaves out are empty */
static bool take_answer(Row *row, const char *columns, char *line)
{
	char diverged[64] = "";
	bool any = false, ok = false;
	if (strstr(line, "status="))
		empty(row, columns);
	for (char *pair = strtok(line, " \n"); pair; pair = strtok(NULL, " \n")) {
		char *value = strchr(pair, '=');
		if (value == NULL)
			continue;
		*value++ = '\0';
		if (*diverged == '\0' && is_not_finite(value))
			snprintf(diverged, sizeof diverged, "%s is %s", pair, value);
		bool is_status = strcmp(pair, "status") == 0;
		if (!is_status && !has_word(columns, pair))
			continue;
		row_set(row, pair, "%s", value);
		ok |= is_status && strcmp(value, "ok") == 0;
		any = true;
	}
	if (ok && *diverged)
		row_set(row, "status", "diverged: %s", diverged);
	return any;
}

// run the script and emit its rows
void peer_measure(Row *row, const char *columns, long limit_s,
	const char *script, const char *arguments, ...)
{
	char *tail, *command, *line = NULL;
	size_t capacity = 0;
	bool answered = false;
	va_list list;
	va_start(list, arguments);
	if (vasprintf(&tail, arguments, list) < 0 || asprintf(&command,
		"timeout %ld python3 src/experiments/%s %s", limit_s, script, tail) < 0)
		die("out of host memory");
	va_end(list);
	FILE *answer = need(popen(command, "r"));
	while (getline(&line, &capacity, answer) > 0)
		if (take_answer(row, columns, line)) {
			row_emit(row);
			answered = true;
		}
	int status = pclose(answer), code = WEXITSTATUS(status);
	if (code || !answered) {
		empty(row, columns);
		if (code == 124)
			row_set(row, "status", "skipped: took more than %ld s", limit_s);
		else
			row_set(row, "status", "skipped: PyTorch %s (exit %d)",
				answered ? "ended early" : "could not run", code);
		row_emit(row);
	}
	free(line);
	free(command);
	free(tail);
}
