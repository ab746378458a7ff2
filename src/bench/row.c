#define _GNU_SOURCE
#include "bench/row.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/grow.h"

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
static Cell *cell_of(Row *row, const char *column)
{
	for (int i = 0; i < row->n; i++)
		if (strcmp(row->cells[i].column, column) == 0)
			return &row->cells[i];
	row->cells = grow(row->cells, row->n, sizeof *row->cells);
	row->cells[row->n] = (Cell){ need(strdup(column)), NULL };
	return &row->cells[row->n++];
}

static void write_cell(Cell *cell, const char *format, va_list args)
{
	free(cell->text);
	if (vasprintf(&cell->text, format, args) < 0)
		die("out of host memory");
	keep_cell_whole(cell->text);
}

void row_set(Row *row, const char *column, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	write_cell(cell_of(row, column), format, args);
	va_end(args);
}

// set the status of a row
void row_status(Row *row, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	write_cell(&row->cells[0], format, args);
	va_end(args);
}

void row_skip(Row *row, const char *format, ...)
{
	Cell why = { NULL, NULL };
	va_list args;
	va_start(args, format);
	write_cell(&why, format, args);
	va_end(args);
	row_status(row, "skipped: %s", why.text);
	free(why.text);
}

// make and free a row
Row row_new(const char *keys)
{
	Row row = { .keys = keys, .ranks = 1 };
	cell_of(&row, ROW_STATUS);
	row_status(&row, "ok");
	return row;
}

void row_forget(Row *row, int n)
{
	while (row->n > n) {
		free(row->cells[--row->n].column);
		free(row->cells[row->n].text);
	}
}

void row_free(Row *row)
{
	row_forget(row, 0);
	free(row->cells);
}

// emit a row, and end a run
void row_emit(Row *row)
{
	fputs(row->keys, row->to);
	for (int i = 1; i <= row->n; i++) {
		const Cell *cell = &row->cells[i % row->n];
		fprintf(row->to, "\t%s=%s", cell->column, cell->text);
	}
	fputc('\n', row->to);
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
