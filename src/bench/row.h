/* row.h: rows of a table, and the keys that name them */
#ifndef BENCH_ROW_H
#define BENCH_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// declare keys
typedef enum { KEY_TEXT, KEY_CHOICE, KEY_INT, KEY_REAL, KEY_BOOL } KeyKind;
/* a column that names a configuration: a field of its struct */
typedef struct Key {
	const char *name;         /* of the field; NULL ends a list of keys */
	KeyKind kind;
	size_t at;                /* offset of the field, in bytes */
	const char *form;         /* "fp32|bf16" for a choice, "%.3g" for a real */
} Key;

/* KEY(Config, context), KEY(Config, precision, PRECISIONS), KEY(Config, h, "%g").
 * By type: a text; the index of a choice (an int or an enumeration); an integer
 * (long); a real; a bool, which reads yes or no */
#define KEY(config, field, ...) { #field, _Generic(((config *)0)->field, \
	const char *: KEY_TEXT, int: KEY_CHOICE, unsigned: KEY_CHOICE,       \
	long: KEY_INT, double: KEY_REAL, bool: KEY_BOOL),                    \
	offsetof(config, field), "" __VA_ARGS__ }

/* the key cells of a configuration, with tabs between them; the caller frees
 * them */
char *key_cells(const Key *keys, const void *config);

// declare rows
typedef struct Cell { char *column, *text; } Cell;
typedef struct Row {
	/* this process among those that measure the configuration together; the table
	 * has the rows of rank 0 */
	int rank, ranks;
	const char *keys;         /* the cells of the keys, tabs between */
	int n;
	Cell *cells;              /* the first one is the status */
	FILE *to;
	bool emitted;
} Row;

/* keys: their cells, which the row does not copy; status reads ok */
Row  row_new(const char *keys);
void row_free(Row *row);
/* sets a column, a new one behind those that are set already; "-": there is no
 * value */
void row_set(Row *row, const char *column, const char *format,
	...) __attribute__((format(printf, 3, 4)));
/* forgets all but the first n columns */
void row_forget(Row *row, int n);
/* for a run that makes several rows; else the row is emitted at its end */
void row_emit(Row *row);
/* ends the process in the middle of a run, with its row, as the run's end
 * would */
_Noreturn void row_end(Row *row);

#endif
