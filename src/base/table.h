/* table.h: tab-separated tables with a head of "# key: value" lines; replaced
 * atomically, kept row by row */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Table Table;

/* columns: the names of the first ones, separated by blanks, of which nkeys
 * name a row's configuration; rows bring others. path NULL: the rows go to
 * stdout when the table is closed, aligned for reading; on a terminal only as
 * many columns as fit. */
Table *table_new(const char *path, const char *columns, int nkeys);
/* shows all columns, also on a terminal */
void   table_wide(Table *t);
/* adds the line "# key: value" to the head; value as by printf */
void   table_meta(Table *t, const char *key, const char *format,
	...) __attribute__((format(printf, 3, 4)));

// declare how rows are kept
/* Adopts the rows and columns of an earlier file at path, finished or not,
 * whose keys and metadata agree with t's but for date and complete; returns how
 * many rows. A file that is not a table of this program and sweep, is damaged,
 * or is being written by another program: exit 2. With adopt false nothing is
 * read, and any file may be replaced. */
int  table_resume(Table *t, bool adopt);
/* is there a row with these key cells, which are separated by tabs? */
bool table_has(const Table *t, const char *keys);
/* Appends rows, each ended by a newline, and saves the file once: a reader
 * finds all of them or none. A row is the cells of its keys, and then cells that
 * name their columns, as fwd_ms=1.5, all separated by tabs. A column that is new
 * to the table stands behind the one before it in the row; a cell that a row
 * does not have reads -. */
void table_append(Table *t, const char *rows);
/* Frees t. complete: the file has all its rows, is saved once more and says
 * so. */
void table_close(Table *t, bool complete);
/* the checksum that a table's first line must hold, of the text that follows
 * that line */
uint64_t table_checksum(const char *text);

#endif
