/* faults.h: ways to lose a rank, and the line that the others end with */
#ifndef TESTS_FAULTS_H
#define TESTS_FAULTS_H

#include <sys/time.h>

#include "base/error.h"
#include "tests/dist/job.h"

// ways to lose a rank
static inline void be_killed(int signal)
{
	kill(getpid(), SIGKILL);
}

static inline void be_stopped(int signal)
{
	kill(getpid(), SIGSTOP);
}

static inline void walk_out(int signal)
{
	_exit(0);
}

// what happens to a rank happens after a time
static inline void happen_after(void (*happens)(int signal), int after_us)
{
	signal(SIGALRM, happens);
	setitimer(ITIMER_REAL, &(struct itimerval){ .it_value.tv_usec = after_us },
		NULL);
}

// one line, which begins with the rank
static inline void check_line(const char *what, const char *said, int rank)
{
	char start[64];
	snprintf(start, sizeof start, "%s: rank %d: ", program_name, rank);
	const char *end = strchr(said, '\n');
	if (strncmp(said, start, strlen(start)) != 0 || !end || end[1])
		fail_msg("%s: rank %d says '%s'", what, rank, said);
}

#endif
