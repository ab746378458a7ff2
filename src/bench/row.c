#define _GNU_SOURCE
#include "bench/row.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

// write the key cells of a configuration
static void write_choice(FILE *to, const char *choices, int index)
{
	assert(index >= 0 && *choices);
	for (; index > 0; index--) {
		choices += strcspn(choices, "|");
		assert(*choices == '|');
		choices++;
	}
	fprintf(to, "%.*s", (int)strcspn(choices, "|"), choices);
}

static void keep_cell_whole(char *cell)
{
	for (; *cell; cell++)
		if (*cell == '\t' || *cell == '\n')
			*cell = ' ';
}

static void write_text(FILE *to, const char *text)
{
	char *cell = need(strdup(*text ? text : "-"));
	keep_cell_whole(cell);
	fputs(cell, to);
	free(cell);
}

// write a key by its kind
static void write_key(FILE *to, const Key *key, const void *field)
{
	switch (key->kind) {
	case KEY_TEXT:
		write_text(to, *(const char *const *)field);
		break;
	case KEY_CHOICE:
		write_choice(to, key->form, *(const int *)field);
		break;
	case KEY_INT:
		fprintf(to, "%ld", *(const long *)field);
		break;
	case KEY_REAL:
		assert(*key->form);
		fprintf(to, key->form, *(const double *)field);
		break;
	case KEY_BOOL:
		fputs(*(const bool *)field ? "yes" : "no", to);
	}
}

// write all keys of a configuration
char *key_cells(const Key *keys, const void *config)
{
	char *cells;
	size_t n;
	FILE *to = need(open_memstream(&cells, &n));
	for (const Key *key = keys; key->name; key++) {
		if (key != keys)
			fputc('\t', to);
		write_key(to, key, (const char *)config + key->at);
	}
	if (fclose(to) != 0)
		die("out of host memory");
	return cells;
}

// set and emit rows
static int column_index(const Row *row, const char *name)
{
	int i = 0;
	size_t length = strlen(name);
	for (const char *c = row->columns; *c; c += strcspn(c, " "), c += *c == ' ',
		i++)
		if (strcspn(c, " ") == length && strncmp(c, name, length) == 0)
			return i;
	die("the experiment has no column %s", name);
}

void row_set(Row *row, const char *column, const char *format, ...)
{
	int i = column_index(row, column);
	va_list args;
	va_start(args, format);
	free(row->cells[i]);
	if (vasprintf(&row->cells[i], format, args) < 0)
		die("out of host memory");
	va_end(args);
	keep_cell_whole(row->cells[i]);
}

// make and free a row
Row row_new(const char *columns, const char *cells)
{
	Row row = { .columns = columns, .ranks = 1 };
	for (const char *c = columns; *c; c += strcspn(c, " "), c += *c == ' ') {
		size_t length = strcspn(cells, "\t");
		assert(row.n < MOST_COLUMNS);
		row.cells[row.n++] = need(length ? strndup(cells, length)
			: strdup("-"));
		cells += length + (cells[length] == '\t');
	}
	row_set(&row, "status", "ok");
	return row;
}

void row_free(Row *row)
{
	for (int i = 0; i < row->n; i++)
		free(row->cells[i]);
}

// emit a row, and end a run
void row_emit(Row *row)
{
	for (int i = 0; i < row->n; i++)
		fprintf(row->to, "%s%c", row->cells[i], i + 1 < row->n ? '\t' : '\n');
	fflush(row->to);
	row->emitted = true;
}

_Noreturn void row_end(Row *row)
{
	if (!row->emitted)
		row_emit(row);
	fflush(NULL);
	_exit(0);
}
