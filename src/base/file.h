/* file.h: files that are replaced whole, and replace only their own kind */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stdio.h>

/* Call before long work: makes the folders of path and tries to write a file
 * there. If path exists, is_ours reads it from its start and says whether it
 * may be replaced; with is_ours NULL or with force any regular file may. A path
 * that cannot be replaced, or holds something else: exit 2. */
void  file_try(const char *path, bool (*is_ours)(FILE *f), bool force);
/* does the rest of f begin with text? */
bool  file_begins(FILE *f, const char *text);
/* Opens FILE.partial beside path for writing, emptied and locked; exit 2 if
 * that fails, as it does while another program writes it. */
FILE *file_begin(const char *path);
/* the name of the file that is written until file_end renames it; the caller
 * frees it */
char *file_partial(const char *path);
/* Locks a file against other programs until it is closed; false: one holds it.
 * Where the file system has no locks this succeeds, and the first time a line on
 * stderr says so. */
bool  file_lock(int fd);
/* Closes f and renames it to path. If it could not be written in full it is
 * removed, path stays as it was, and the program ends with status 1. */
void  file_end(FILE *f, const char *path);
/* As file_begin and file_end, for a program that has to tell others before it
 * ends: file_start returns NULL and sets errno, file_finish returns 0 or an
 * errno. file_reason puts that errno into words. */
FILE *file_start(const char *path);
int   file_finish(FILE *f, const char *path);
const char *file_reason(int error);
/* Returns the text of a file up to its first zero byte, to be freed by the
 * caller; *n: how many bytes were read, with that zero byte. NULL: there is no
 * such file. One that cannot be read: exit 2. */
char *file_read(const char *path, size_t *n);

#endif
