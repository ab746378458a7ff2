/* row.h: rows of a table */
#ifndef BENCH_ROW_H
#define BENCH_ROW_H

#include <stdbool.h>
#include <stdio.h>

#include "bench/key.h"

// declare rows
enum { MOST_COLUMNS = 48 };
typedef struct Row {
	/* this process among those that measure the configuration together; the table
	 * has the rows of rank 0 */
	int rank, ranks;
	const char *columns;      /* names, blanks between */
	int n;
	char *cells[MOST_COLUMNS];
	FILE *to;
	bool emitted;
} Row;

/* cells: of the keys, the first columns; the other columns read -, and
 * status ok */
Row  row_new(const char *columns, const char *cells);
void row_free(Row *row);
void row_set(Row *row, const char *column, const char *format,
	...) __attribute__((format(printf, 3, 4)));
/* emits a row of a run that has several; else the run's end emits it */
void row_emit(Row *row);
/* ends the process in the middle of a run, with its row, as the run's end
 * would */
_Noreturn void row_end(Row *row);

#endif
