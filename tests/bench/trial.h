/* trial.h: runs a small experiment, and reads what it writes */
#ifndef TESTS_TRIAL_H
#define TESTS_TRIAL_H

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/harness.h"
#include "tests/base/folder.h"

static char table_path[64], said_path[64];

// name files, run a trial and read a file
static inline int name_files(void **state)
{
	int failed = make_folder(state);
	snprintf(table_path, sizeof table_path, "%s/t.tsv", folder);
	snprintf(said_path, sizeof said_path, "%s/said", folder);
	return failed;
}

static inline int run_trial(const Experiment *e, const char *sweep)
{
	char *argv[] = { "trial", "--sweep", (char *)sweep, "--out", table_path,
		"--device=cpu", NULL };
	fflush(NULL);
	return harness_main(e, 6, argv);
}

static inline char *read_file(const char *path)
{
	static char text[1 << 16];
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
	text[n] = '\0';
	if (f)
		fclose(f);
	return text;
}

// run a trial silently, and expect a text
/* stderr goes to said_path */
static inline int run_silently(const Experiment *e, const char *sweep)
{
	int kept = dup(STDERR_FILENO),
		said = open(said_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	dup2(said, STDERR_FILENO);
	int status = run_trial(e, sweep);
	dup2(kept, STDERR_FILENO);
	close(kept);
	close(said);
	return status;
}

static inline void expect(const char *path, const char *format, ...)
{
	char wanted[128];
	va_list args;
	va_start(args, format);
	vsnprintf(wanted, sizeof wanted, format, args);
	va_end(args);
	if (strstr(read_file(path), wanted) == NULL)
		fail_msg("'%s' is not in\n%s", wanted, read_file(path));
}

#endif
