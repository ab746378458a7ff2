/* file.h: files that are replaced whole, and replace only their own kind */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stdio.h>

/* before long work: makes the folders of path and tries to write there. is_ours
 * looks at a file that is there, from its start; NULL, or force: replace any
 * file. What cannot be replaced or is not ours: exit 2 */
void  file_try(const char *path, bool (*is_ours)(FILE *f), bool force);
bool  file_begins(FILE *f, const char *text);
/* beside path; refused while another program does the same: exit 2 */
FILE *file_begin(const char *path);
/* the name under which it is written until file_end; to be freed */
char *file_partial(const char *path);
/* puts what was written in the place of path; if it was not written whole, path
 * stays as it was: exit 1 */
void  file_end(FILE *f, const char *path);
/* the same two, for a program that has to tell others before it ends: NULL with
 * errno set; 0, or an errno. file_reason says in words what they are */
FILE *file_start(const char *path);
int   file_finish(FILE *f, const char *path);
const char *file_reason(int error);
/* the text of a file up to its first zero byte, to be freed, and in *n how many
 * bytes were read, a zero byte too; NULL: no such file. Unreadable: exit 2 */
char *file_read(const char *path, size_t *n);

#endif
