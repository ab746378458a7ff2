#define _GNU_SOURCE
#include "base/table.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

struct Table {
	char *path;                        /* NULL: stdout */
	char *header;                      /* column names, separated by tabs */
	int nkeys, ncolumns;
	int nmeta;
	struct { char *key, *value; } meta[32];
	int nrows;
	char **rows;                       /* cells separated by tabs */
};

static void make_folders(const char *path)
{
	char *p = need(strdup(path));
	for (char *slash = strchr(p + 1, '/'); slash;
		slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(p, 0777) != 0 && errno != EEXIST)
			usage_error("cannot make folder %s: %s", p, strerror(errno));
		*slash = '/';
	}
	free(p);
}

static FILE *open_temporary(const char *path, char **temporary)
{
	if (asprintf(temporary, "%s.%ld", path, (long)getpid()) < 0)
		die("out of host memory");
	FILE *f = fopen(*temporary, "w");
	if (f == NULL)
		usage_error("cannot write %s: %s", path, strerror(errno));
	return f;
}

static void check_writable(const char *path)
{
	struct stat s;
	if (stat(path, &s) == 0 && !S_ISREG(s.st_mode))
		usage_error("cannot write %s: it is not a regular file", path);
	make_folders(path);
	char *temporary;
	fclose(open_temporary(path, &temporary));
	unlink(temporary);
	free(temporary);
}
static int count_cells(const char *line)
{
	int n = 1;
	for (; *line; line++)
		n += *line == '\t';
	return n;
}

Table *table_new(const char *path, const char *columns, int nkeys)
{
	if (path)
		check_writable(path);
	Table *t = need(calloc(1, sizeof *t));
	t->path = path ? need(strdup(path)) : NULL;
	t->header = need(strdup(columns));
	for (char *c = t->header; *c; c++)
		if (*c == ' ')
			*c = '\t';
	t->nkeys = nkeys;
	t->ncolumns = count_cells(t->header);
	assert(nkeys >= 1 && nkeys < t->ncolumns);
	return t;
}

void table_meta(Table *t, const char *key, const char *format, ...)
{
	assert(t->nmeta < (int)(sizeof t->meta / sizeof *t->meta));
	va_list args;
	va_start(args, format);
	char *value;
	if (vasprintf(&value, format, args) < 0)
		die("out of host memory");
	va_end(args);
	for (char *c = value; *c; c++)
		if (*c == '\n' || *c == '\t')
			*c = ' ';
	t->meta[t->nmeta].key = need(strdup(key));
	t->meta[t->nmeta++].value = value;
}
static size_t key_length(const char *row, int nkeys)
{
	size_t n = 0;
	while (nkeys > 0 && row[n])
		nkeys -= row[n++] == '\t';
	return nkeys == 0 ? n - 1 : n;
}

bool table_has(const Table *t, const char *keys)
{
	size_t length = strlen(keys);
	for (int i = 0; i < t->nrows; i++)
		if (key_length(t->rows[i], t->nkeys) == length && strncmp(t->rows[i],
			keys, length) == 0)
			return true;
	return false;
}
static uint64_t hash_line(uint64_t hash, const char *line)
{
	for (; *line; line++)
		hash = (hash ^ (unsigned char)*line) * 0x100000001b3;
	return (hash ^ '\n') * 0x100000001b3;
}

static uint64_t hash_rows(const Table *t)
{
	uint64_t hash = hash_line(0xcbf29ce484222325, t->header);
	for (int i = 0; i < t->nrows; i++)
		hash = hash_line(hash, t->rows[i]);
	return hash;
}

static void save(const Table *t, bool complete)
{
	if (t->path == NULL)
		return;
	char *temporary;
	FILE *f = open_temporary(t->path, &temporary);
	for (int i = 0; i < t->nmeta; i++)
		fprintf(f, "# %s: %s\n", t->meta[i].key, t->meta[i].value);
	fprintf(f, "# check: %016" PRIx64 "\n", hash_rows(t));
	fprintf(f, "# complete: %s\n%s\n", complete ? "yes" : "no", t->header);
	for (int i = 0; i < t->nrows; i++)
		fprintf(f, "%s\n", t->rows[i]);
	const struct timespec zero[2] = { { 0, 0 }, { 0, 0 } };
	bool written = fflush(f) == 0 && !ferror(f)
		&& (complete || futimens(fileno(f), zero) == 0);
	if (fclose(f) != 0 || !written || rename(temporary, t->path) != 0) {
		int why = errno;
		unlink(temporary);
		die("cannot write %s: %s", t->path, strerror(why));
	}
	free(temporary);
}
static bool volatile_key(const char *key)
{
	return strcmp(key, "date") == 0 || strcmp(key, "check") == 0
		|| strcmp(key, "complete") == 0;
}

static bool same_meta(const Table *t, const char *key, const char *value)
{
	for (int i = 0; i < t->nmeta; i++)
		if (strcmp(t->meta[i].key, key) == 0)
			return volatile_key(key) || strcmp(t->meta[i].value, value) == 0;
	return volatile_key(key);
}

static void add_row(Table *t, const char *row)
{
	t->rows = need(realloc(t->rows, (t->nrows + 1) * sizeof *t->rows));
	t->rows[t->nrows++] = need(strdup(row));
}

int table_resume(Table *t, bool adopt)
{
	FILE *f = t->path ? fopen(t->path, "r") : NULL;
	if (f == NULL)
		return 0;
	bool agrees = adopt, in_rows = false;
	char *line = NULL;
	size_t capacity = 0;
	int number = 0, nmeta = 0;
	for (ssize_t length; (length = getline(&line, &capacity, f)) > 0;) {
		number++;
		if (line[length - 1] != '\n')
			usage_error("%s:%d: the line is cut off; delete the file to "
				"measure anew", t->path, number);
		line[length - 1] = '\0';
		if (number == 1 && strncmp(line, "# ", 2) != 0)
			usage_error("cannot write %s: it exists and is not a table", t->path);
		if (strncmp(line, "# program: ", 11) == 0
			&& !same_meta(t, "program", line + 11))
			usage_error("cannot write %s: it is a table of %s", t->path, line + 11);
		if (!in_rows && strncmp(line, "# ", 2) == 0) {
			char *colon = strstr(line, ": ");
			if (colon == NULL)
				usage_error("%s:%d: expected '# key: value'", t->path, number);
			*colon = '\0';
			nmeta += !volatile_key(line + 2);
			agrees &= same_meta(t, line + 2, colon + 2);
		} else if (!in_rows) {
			in_rows = true;
			agrees &= strcmp(line, t->header) == 0;
			for (int i = 0; i < t->nmeta; i++)
				nmeta -= !volatile_key(t->meta[i].key);
			agrees &= nmeta == 0;
		} else if (agrees) {
			if (count_cells(line) != t->ncolumns)
				usage_error("%s:%d: %d cells where the header has %d; delete the file "
					"to measure anew", t->path, number,
					count_cells(line), t->ncolumns);
			add_row(t, line);
		}
	}
	free(line);
	fclose(f);
	if (!agrees || !in_rows)
		t->nrows = 0;
	return t->nrows;
}
void table_append(Table *t, const char *rows)
{
	for (const char *end; (end = strchr(rows, '\n')); rows = end + 1) {
		char *row = need(strndup(rows, end - rows));
		assert(count_cells(row) == t->ncolumns);
		add_row(t, row);
		free(row);
	}
	assert(*rows == '\0');
	save(t, false);
}

static void print_row(const char *row, const int *width)
{
	for (int c = 0;; c++) {
		int n = (int)strcspn(row, "\t");
		printf("%*s%.*s", c ? width[c] + 2 - n : width[c] - n, "", n, row);
		if (row[n] == '\0')
			break;
		row += n + 1;
	}
	putchar('\n');
}

static void widen(int *width, const char *row)
{
	for (int c = 0; *row; c++) {
		int n = (int)strcspn(row, "\t");
		width[c] = width[c] > n ? width[c] : n;
		row += n + (row[n] == '\t');
	}
}

static void print_aligned(const Table *t)
{
	int *width = need(calloc(t->ncolumns, sizeof *width));
	widen(width, t->header);
	for (int i = 0; i < t->nrows; i++)
		widen(width, t->rows[i]);
	for (int i = 0; i < t->nmeta; i++)
		printf("# %s: %s\n", t->meta[i].key, t->meta[i].value);
	print_row(t->header, width);
	for (int i = 0; i < t->nrows; i++)
		print_row(t->rows[i], width);
	free(width);
}

void table_close(Table *t, bool complete)
{
	if (t->path == NULL)
		print_aligned(t);
	else if (complete)
		save(t, true);
	for (int i = 0; i < t->nmeta; i++) {
		free(t->meta[i].key);
		free(t->meta[i].value);
	}
	for (int i = 0; i < t->nrows; i++)
		free(t->rows[i]);
	free(t->rows);
	free(t->header);
	free(t->path);
	free(t);
}
