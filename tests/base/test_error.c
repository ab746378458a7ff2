/* the line that a program ends with */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdint.h>
#include <pthread.h>
#include <string.h>

#include "base/error.h"
#include "tests/base/exits.h"
#include "tests/base/program.h"

enum { THREADS = 8, TIMES = 20 };
static pthread_barrier_t together;

// end the program in eight threads at once
static void leave_slowly(int status, void *context)
{
	usleep(10000);
	leave_at_once(status, context);
}

static void *end_program(void *number)
{
	pthread_barrier_wait(&together);
	die("thread %d has met an error", (int)(intptr_t)number);
}

static void end_in_threads(FILE *said)
{
	pthread_t thread;
	dup2(fileno(said), 2);
	on_exit(leave_slowly, NULL);
	pthread_barrier_init(&together, NULL, THREADS);
	for (int i = 0; i < THREADS - 1; i++)
		pthread_create(&thread, NULL, end_program, (void *)(intptr_t)i);
	end_program((void *)(intptr_t)(THREADS - 1));
}

// test that several threads leave one line
static void several_threads_leave_one_line(void **state)
{
	for (int i = 0; i < TIMES; i++) {
		char text[4096], want[80];
		int thread, status;
		FILE *said = memory_file();
		fflush(NULL);
		pid_t child = fork();
		if (child == 0)
			end_in_threads(said);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
		rewind(said);
		text[fread(text, 1, sizeof text - 1, said)] = '\0';
		fclose(said);
		assert_int_equal(sscanf(text, "systems: thread %d", &thread), 1);
		snprintf(want, sizeof want, "systems: thread %d has met an error\n",
			thread);
		assert_string_equal(text, want);
	}
}

TESTS(cmocka_unit_test(several_threads_leave_one_line))
