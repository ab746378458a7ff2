/* a group whose parent stood still */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/group.h"
#include "tests/base/exits.h"
#include "tests/base/program.h"

static void take_half_a_second(void *arg, int rank, char *doing, FILE *to)
{
	usleep(500000);
	fprintf(to, "a row\n");
	fclose(to);
}

static void a_parent_that_stood_still_waits(void **state)
{
	int status;
	pid_t parent = fork();
	if (parent == 0)
		_exit(group_run(2, 1, take_half_a_second, NULL).end != ENDED_WELL);
	usleep(200000);
	kill(parent, SIGSTOP);
	usleep(1500000);
	kill(parent, SIGCONT);
	waitpid(parent, &status, 0);
	assert_int_equal(status, 0);
}

// test that ranks without memory make one row
static void run_out(void *late, int rank, char *doing, FILE *to)
{
	usleep(rank == *(int *)late ? 200000 : 0);
	fprintf(to, "rank %d\n", rank);
	fclose(to);
	_exit(EXIT_OUT_OF_MEMORY);
}

static void ranks_without_memory_make_one_row(void **state)
{
	for (int late = 0; late < 2; late++) {
		Outcome o = group_run(2, 60, run_out, &late);
		assert_int_equal(o.end, OUT_OF_MEMORY);
		assert_int_equal(o.rank, 0);
		assert_string_equal(o.lines, "rank 0\n");
		free(o.lines);
	}
}

TESTS(
	cmocka_unit_test(a_parent_that_stood_still_waits),
	cmocka_unit_test(ranks_without_memory_make_one_row))
