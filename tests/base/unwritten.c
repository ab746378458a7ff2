#define _GNU_SOURCE
/* unwritten.c: a function that is not written fails its case, not its test */
#include "base/unwritten.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static pid_t process;
static pthread_t thread;

static bool in_case(void)
{
	return getpid() == process && pthread_equal(pthread_self(), thread);
}

/* fails the case, or outside cases ends the test */
static void fail_later(int number)
{
	if (in_case())
		fail_msg("an assertion fails after a case that was left early");
}

static void fail_case(const char *message)
{
	if (!in_case())
		return;
	signal(SIGABRT, fail_later);
	fail_msg("%s", message);
}

__attribute__((constructor)) static void take_cases(void)
{
	process = getpid();
	thread = pthread_self();
	unwritten_in_case = fail_case;
}
