#define _GNU_SOURCE
/* unwritten.c: a function that is not written fails its case, not its test */
#include "base/unwritten.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static pid_t process;
static pthread_t thread;

static void fail_case(const char *message)
{
	if (getpid() == process && pthread_equal(pthread_self(), thread))
		fail_msg("%s", message);
}

__attribute__((constructor)) static void take_cases(void)
{
	process = getpid();
	thread = pthread_self();
	unwritten_in_case = fail_case;
}
