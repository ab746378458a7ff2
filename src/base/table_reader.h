/* table_reader.h: the rows of a table that was written before, cells by column */
#ifndef BASE_TABLE_READER_H
#define BASE_TABLE_READER_H

#include <stdbool.h>

typedef struct Records Records;

/* Reads the table at path. NULL: there is no such file. One that is no table or
 * is damaged: exit 2. */
Records    *records_read(const char *path);
/* frees *r and sets it to NULL; *r may be NULL */
void        records_free(Records **r);
/* the number of rows */
int         records_count(const Records *r);
/* the value of the line "# key: value" in the head; it ends at a newline. NULL:
 * there is no such line */
const char *records_head(const Records *r, const char *key);
/* has the head a line "# key: value" with just this value? */
bool        records_head_is(const Records *r, const char *key,
	const char *value);
/* the number of columns, the name of one, and a cell of it */
int         records_columns(const Records *r);
const char *records_column(const Records *r, int column);
const char *records_cell(const Records *r, int row, int column);
/* the text of a cell; NULL: there is no such column */
const char *records_text(const Records *r, int row, const char *column);
/* is this the text of the cell? false where there is no such column */
bool        records_is(const Records *r, int row, const char *column,
	const char *text);
/* the number in a cell; NaN: no such column, or a cell without a number */
double      records_number(const Records *r, int row, const char *column);

#endif
