/* exits.h: runs f(context) in a child process with stderr silenced and returns
 * its exit status, or -1 after a signal */
#ifndef TESTS_EXITS_H
#define TESTS_EXITS_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* registered last and so called first: ends the child before other handlers
 * run, the leak check among them */
static inline void leave_at_once(int status, void *context)
{
	fflush(NULL);
	_exit(status);
}

static inline int exit_status(void (*f)(void *), void *context)
{
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		if (!freopen("/dev/null", "w", stderr)
			|| on_exit(leave_at_once, NULL) != 0)
			_exit(99);
		f(context);
		exit(0);
	}
	int status = 0;
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* a file without a name, which a child writes and its parent reads */
static inline FILE *memory_file(void)
{
	return fdopen(memfd_create("said", 0), "w+");
}

#endif
