#define _GNU_SOURCE
#include "bench/peer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/error.h"
#include "base/process.h"

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

// tell whether a number is finite
/* inf, or not a number */
static bool is_not_finite(const char *value)
{
	char *end;
	double x = strtod(value, &end);
	return end != value && *end == '\0' && !isfinite(x);
}

// set columns from a line of an answer
/* true: the line was an answer; of the columns before it, n are kept */
static bool take_answer(Row *row, int n, char *line)
{
	char diverged[64] = "";
	bool ok = false;
	if (strstr(line, ROW_STATUS "=") == NULL)
		return false;
	row_forget(row, n);
	for (char *pair = strtok(line, " \n"); pair; pair = strtok(NULL, " \n")) {
		char *value = strchr(pair, '=');
		if (value == NULL)
			continue;
		*value++ = '\0';
		if (*diverged == '\0' && is_not_finite(value))
			snprintf(diverged, sizeof diverged, "%s is %s", pair, value);
		ok |= strcmp(pair, ROW_STATUS) == 0 && strcmp(value, "ok") == 0;
		row_set(row, pair, "%s", value);
	}
	if (ok && *diverged)
		row_status(row, "diverged: %s", diverged);
	return true;
}

// run the script and emit its rows
/* the shell's words that run a script; the caller frees them */
static char *command_of(long limit_s, const char *script, const char *arguments)
{
	char *site = process_beside("site"), *word = process_word(site), *command;
	if (asprintf(&command, "PYTHONPATH=%s\"${PYTHONPATH:+:$PYTHONPATH}\" exec "
		"timeout %ld python3 src/experiments/%s %s", word, limit_s, script,
		arguments) < 0)
		die("out of host memory");
	free(word);
	free(site);
	return command;
}

void peer_measure(Row *row, long limit_s, const char *script,
	const char *arguments, ...)
{
	char *tail, *line = NULL;
	size_t capacity = 0;
	bool answered = false;
	int n = row->n;
	va_list list;
	va_start(list, arguments);
	if (vasprintf(&tail, arguments, list) < 0)
		die("out of host memory");
	va_end(list);
	char *command = command_of(limit_s, script, tail);
	FILE *answer = need(popen(command, "r"));
	while (getline(&line, &capacity, answer) > 0)
		if (take_answer(row, n, line)) {
			row_emit(row);
			answered = true;
		}
	int status = pclose(answer), code = WEXITSTATUS(status);
	if (code || !answered) {
		row_forget(row, n);
		if (code == 124)
			row_skip(row, "took more than %ld s", limit_s);
		else
			row_skip(row, "PyTorch %s (exit %d)",
				answered ? "ended early" : "could not run", code);
		row_emit(row);
	}
	free(line);
	free(command);
	free(tail);
}
