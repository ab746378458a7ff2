#define _GNU_SOURCE
#include "base/process.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

// find the file of this code
char *process_file(void)
{
	char *line = NULL, *path = NULL;
	size_t capacity = 0;
	uintptr_t first, end, here = (uintptr_t)process_file;
	int at = 0;
	FILE *f = fopen("/proc/self/maps", "r");
	while (f && path == NULL && getline(&line, &capacity, f) > 0)
		if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &first, &end, &at) == 2
			&& first <= here && here < end && line[at] == '/')
			path = strndup(line + at, strcspn(line + at, "\n"));
	if (path == NULL)
		die("/proc/self/maps does not tell where the program is");
	fclose(f);
	free(line);
	return path;
}

char *process_beside(const char *format, ...)
{
	va_list args;
	char *name, *path, *self = process_file();
	va_start(args, format);
	if (vasprintf(&name, format, args) < 0)
		die("out of host memory");
	va_end(args);
	if (asprintf(&path, "%s/%s", dirname(self), name) < 0)
		die("out of host memory");
	free(name);
	free(self);
	return path;
}

// start this process again
/* the words of the command, up to a NULL */
static char **command_words(void)
{
	char **words = NULL;
	size_t n = 0, capacity;
	ssize_t length = 0;
	FILE *f = fopen("/proc/self/cmdline", "r");
	do {
		words = need(realloc(words, (n + 1) * sizeof *words));
		words[n] = NULL;
		capacity = 0;
		length = f ? getdelim(&words[n], &capacity, '\0', f) : -1;
	} while (length > 0 && ++n);
	free(words[n]);
	words[n] = NULL;
	if (f)
		fclose(f);
	return words;
}

void process_again(void)
{
	char self[PATH_MAX];
	struct stat told, real;
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	self[n > 0 ? n : 0] = '\0';
	if (stat(self, &told) != 0 || stat("/proc/self/exe", &real) != 0
		|| told.st_dev != real.st_dev || told.st_ino != real.st_ino)
		return;
	char **words = command_words();
	if (words[0])
		execv(self, words);
	for (char **word = words; *word; word++)
		free(*word);
	free(words);
}

// make a folder for a while
/* NULL: errno says why there is none */
static char *new_folder(const char *in, const char *name)
{
	char *path;
	if (asprintf(&path, "%s/%s.XXXXXX", in, name) < 0)
		die("out of host memory");
	if (mkdtemp(path))
		return path;
	free(path);
	return NULL;
}

char *process_folder(const char *name)
{
	const char *asked = getenv("TMPDIR"), *usual = "/tmp";
	char *path = new_folder(asked && *asked ? asked : usual, name);
	if (path == NULL && asked && *asked) {
		fprintf(stderr, "%s: no folder can be made in TMPDIR (%s): %s; /tmp is "
			"used\n", program_name, asked, strerror(errno));
		setenv("TMPDIR", usual, 1);
		path = new_folder(usual, name);
	}
	if (path == NULL)
		die("cannot make a folder in /tmp: %s (TMPDIR may name another)",
			strerror(errno));
	return path;
}

// quote a word for a shell
char *process_word(const char *text)
{
	char *word = need(malloc(4 * strlen(text) + 3)), *to = word;
	*to++ = '\'';
	for (; *text; text++)
		to = *text == '\'' ? stpcpy(to, "'\\''") : (*to = *text, to + 1);
	strcpy(to, "'");
	return word;
}
