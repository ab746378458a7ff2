/* table.h: tab-separated tables with a head of "# key: value" lines; replaced
 * atomically, kept row by row */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Table Table;

/* columns: names separated by blanks; the first nkeys of them name a row's
 * configuration.
 * path NULL: rows go to stdout, aligned for reading; on a terminal as many
 * columns as fit, or all if wide */
Table *table_new(const char *path, const char *columns, int nkeys);
void   table_wide(Table *t);
void   table_meta(Table *t, const char *key, const char *format,
	...) __attribute__((format(printf, 3, 4)));

/* adopts the rows of an earlier, unfinished or finished file whose columns
 * and metadata agree but for date and complete; returns the number adopted. A
 * file that is not a table of this program and sweep, that is damaged or that
 * another program is writing: exit 2. Not adopt: any file will be replaced */
int  table_resume(Table *t, bool adopt);
/* keys: the key cells, separated by tabs */
bool table_has(const Table *t, const char *keys);
/* rows, each ended by a newline, cells separated by tabs: all or none */
void table_append(Table *t, const char *rows);
/* frees t; complete: the file has all its rows and says so */
void table_close(Table *t, bool complete);
/* of all that follows the first line of a file, which holds it */
uint64_t table_checksum(const char *text);

#endif
