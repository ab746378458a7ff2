/* records.h: the rows of a table that was written before, cells by column */
#ifndef BASE_RECORDS_H
#define BASE_RECORDS_H

#include <stdbool.h>

typedef struct Records Records;

/* NULL: there is no file. One that is no table, or damaged: exit 2 */
Records    *records_read(const char *path);
void        records_free(Records **r);
int         records_count(const Records *r);
/* the value of the line "# key: value" of the head, up to the newline; NULL: no
 * such line */
const char *records_head(const Records *r, const char *key);
bool        records_head_is(const Records *r, const char *key,
	const char *value);
/* NULL: there is no such column */
const char *records_text(const Records *r, int row, const char *column);
/* false: no such column, or another text */
bool        records_is(const Records *r, int row, const char *column,
	const char *text);
/* NaN: no such column, or no number */
double      records_number(const Records *r, int row, const char *column);

#endif
