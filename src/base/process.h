/* process.h: what a program needs to know of itself in order to start others */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

/* The path of the file that holds this code, a program or a library; dies if the
 * system does not tell. The caller frees it. */
char *process_file(void);
/* the path of a file beside it, whose name is formatted; the caller frees it */
char *process_beside(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
/* Starts this process once more, with the command that it was started with and
 * the environment that it has now. Returns if that cannot be done, or if a tool
 * such as valgrind runs the program, which would lose it. */
void  process_again(void);
/* A new folder whose name begins with `name`, in $TMPDIR, or in /tmp where that
 * is not set. If there can be none in $TMPDIR, a line on stderr says so, and /tmp
 * is used from then on, by programs that are started too. Dies if there can be
 * none at all. The caller removes the folder and frees its name. */
char *process_folder(const char *name);
/* text as one word of a shell, whatever is in it; the caller frees it */
char *process_word(const char *text);

#endif
