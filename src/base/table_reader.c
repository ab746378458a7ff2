#define _GNU_SOURCE
#include "base/table_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/grow.h"
#include "base/table.h"

struct Records {
	char *text;
	int ncolumns, nrows;
	char **cells;                      /* names of columns, then row by row */
};

// check a table's head
static size_t line_length(const char *line)
{
	size_t n = strcspn(line, "\n");
	return n + (line[n] == '\n');
}

/* dies of a text that is no table or is damaged; returns the line behind its
 * head */
static char *check_head(char *text, const char *path)
{
	uint64_t sum;
	int n = 0;
	if (sscanf(text, "# checksum: %16" SCNx64 "%n", &sum, &n) != 1
		|| text[n] != '\n')
		usage_error("%s: not a table", path);
	text += n + 1;
	if (table_checksum(text) != sum)
		usage_error("%s: its lines are not those that were written", path);
	while (*text == '#')
		text += line_length(text);
	return text;
}

// take a table's text apart
static void split_line(Records *r, char *line, const char *path)
{
	int n = 0, most = r->ncolumns;
	size_t first = most ? (size_t)(r->nrows + 1) * most : 0;
	char *cell;
	while ((cell = strsep(&line, "\t")) && (most == 0 || n < most)) {
		r->cells = grow(r->cells, first + n, sizeof *r->cells);
		r->cells[first + n++] = cell;
	}
	if (most && (n < most || cell))
		usage_error("%s: row %d has not %d cells", path, r->nrows + 1, most);
	r->ncolumns = n;
	r->nrows += most > 0;
}

Records *records_read(const char *path)
{
	size_t length;
	char *text = file_read(path, &length);
	if (text == NULL)
		return NULL;
	Records *r = need(calloc(1, sizeof *r));
	r->text = text;
	char *lines = check_head(text, path), *line;
	while ((line = strsep(&lines, "\n")) && (*line || lines))
		split_line(r, line, path);
	if (r->ncolumns == 0)
		usage_error("%s: no columns", path);
	return r;
}

void records_free(Records **r)
{
	if (*r) {
		free((*r)->cells);
		free((*r)->text);
	}
	free(*r);
	*r = NULL;
}

// find cells by column
int records_count(const Records *r)
{
	return r->nrows;
}

const char *records_head(const Records *r, const char *key)
{
	size_t n = strlen(key);
	for (const char *at = r->text; *at == '#'; at += line_length(at))
		if (strncmp(at + 2, key, n) == 0 && strncmp(at + 2 + n, ": ", 2) == 0)
			return at + 4 + n;
	return NULL;
}

bool records_head_is(const Records *r, const char *key, const char *value)
{
	const char *found = records_head(r, key);
	size_t n = strlen(value);
	return found && strncmp(found, value, n) == 0 && found[n] == '\n';
}

int records_columns(const Records *r)
{
	return r->ncolumns;
}

const char *records_column(const Records *r, int column)
{
	return r->cells[column];
}

const char *records_cell(const Records *r, int row, int column)
{
	return r->cells[(size_t)(row + 1) * r->ncolumns + column];
}

const char *records_text(const Records *r, int row, const char *column)
{
	for (int c = 0; c < r->ncolumns; c++)
		if (strcmp(r->cells[c], column) == 0)
			return records_cell(r, row, c);
	return NULL;
}

bool records_is(const Records *r, int row, const char *column, const char *text)
{
	const char *cell = records_text(r, row, column);
	return cell && strcmp(cell, text) == 0;
}

double records_number(const Records *r, int row, const char *column)
{
	const char *cell = records_text(r, row, column);
	char *end = NULL;
	double x = cell ? strtod(cell, &end) : NAN;
	return cell && end != cell && *end == '\0' ? x : NAN;
}
