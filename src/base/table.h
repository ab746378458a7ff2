/* table.h: tab-separated tables with a head of "# key: value" lines; replaced
 * atomically, kept row by row */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Table Table;

/* columns: their names, separated by blanks; the first nkeys name a row's
 * configuration. path NULL: the rows go to stdout when the table is closed,
 * aligned for reading; on a terminal only as many columns as fit. */
Table *table_new(const char *path, const char *columns, int nkeys);
/* shows all columns, also on a terminal */
void   table_wide(Table *t);
/* adds the line "# key: value" to the head; value as by printf */
void   table_meta(Table *t, const char *key, const char *format,
	...) __attribute__((format(printf, 3, 4)));

// declare how rows are kept
/* Adopts the rows of an earlier file at path, finished or not, whose columns
 * and metadata agree with t's but for date and complete; returns how many. A
 * file that is not a table of this program and sweep, is damaged, or is being
 * written by another program: exit 2. With adopt false nothing is read, and any
 * file may be replaced. */
int  table_resume(Table *t, bool adopt);
/* is there a row with these key cells, which are separated by tabs? */
bool table_has(const Table *t, const char *keys);
/* Appends rows, each ended by a newline, with cells separated by tabs, and
 * saves the file once: a reader finds all of them or none. */
void table_append(Table *t, const char *rows);
/* Frees t. complete: the file has all its rows, is saved once more and says
 * so. */
void table_close(Table *t, bool complete);
/* the checksum that a table's first line must hold, of the text that follows
 * that line */
uint64_t table_checksum(const char *text);

#endif
