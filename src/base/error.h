/* error.h: the ways a program ends badly */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

extern const char *program_name;   /* set by options_parse */

/* from now on a program that could not write all of its standard output does
 * not exit 0 but 1 */
void check_output_at_exit(void);

/* a failing machine: one line on stderr, exit 1. Of several threads that end the
 * program the first one prints its line, and the others wait for the end */
_Noreturn void die(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/* the same from any thread: the others are not waited for, no handler runs */
_Noreturn void die_at_once(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/* bad input: one line on stderr that names it and what was expected, exit 2 */
_Noreturn void usage_error(const char *format,
	...) __attribute__((format(printf, 1, 2)));

/* p itself; dies when an allocation of ordinary (host, untracked) memory gave
 * NULL */
void *need(void *p);

#endif
