/* row.h: rows of a table */
#ifndef BENCH_ROW_H
#define BENCH_ROW_H

#include <stdbool.h>
#include <stdio.h>

#include "bench/key.h"

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
/* sets the status, a column of every table: ok, or else a word, a colon and
 * why, as in "oom: rank 1: ..." */
#define ROW_STATUS "status"
void row_status(Row *row, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* sets the status to "skipped: " and why there are no values */
void row_skip(Row *row, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* forgets all but the first n columns */
void row_forget(Row *row, int n);
/* emits a row of a run that has several; else the run's end emits it */
void row_emit(Row *row);
/* ends the process in the middle of a run, with its row, as the run's end
 * would */
_Noreturn void row_end(Row *row);

#endif
