/* error.h: the ways a program ends badly */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

/* the name before each message, without folders; options_parse sets it */
extern const char *program_name;

/* From now on a program whose standard output could not be written in full
 * exits with status 1 instead of 0. */
void check_output_at_exit(void);

/* A failing machine: prints one line on stderr and exits with status 1. Where
 * several threads end the program, the first prints its line and the others
 * wait until the process is gone. */
_Noreturn void die(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/* As die, by _exit: waits for no other thread and runs no handler. */
_Noreturn void die_at_once(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/* Bad input: prints one line that names it and what was expected, and exits
 * with status 2. */
_Noreturn void usage_error(const char *format,
	...) __attribute__((format(printf, 1, 2)));

/* Returns p, fresh memory of the host; dies if it is NULL. */
void *need(void *p);

#endif
