#define _GNU_SOURCE
/* unwritten.c: a function that is not written fails its case, not its test */
#include "base/unwritten.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/base/program.h"

static pid_t process;
static pthread_t thread;
static char left[200];                /* the message of the last such case */

static bool in_case(void)
{
	return getpid() == process && pthread_equal(pthread_self(), thread);
}

/* fails the case, or outside cases ends the test */
static void fail_later(int number)
{
	if (in_case())
		fail_msg("a case was left before: %s", left);
}

static void fail_case(const char *message)
{
	if (!in_case())
		return;
	snprintf(left, sizeof left, "%s", message);
	signal(SIGABRT, fail_later);
	fail_msg("%s", message);
}

__attribute__((constructor)) static void take_cases(void)
{
	process = getpid();
	thread = pthread_self();
	unwritten_in_case = fail_case;
}
