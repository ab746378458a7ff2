/* ranks.h: runs a function in several processes, which can meet */
#ifndef TESTS_RANKS_H
#define TESTS_RANKS_H

#include <signal.h>
#include <string.h>

#include "dist/link.h"
#include "tests/base/exits.h"

enum { MOST = 4 };

typedef struct Ended {
	int status;                     /* of exit; or minus the signal */
	char said[2048];                /* to stderr */
} Ended;

typedef struct Place {
	int rank, ranks;
	Meeting meeting;
	void *context;
} Place;

typedef void Body(const Place *place);

static inline pid_t fork_rank(Body *body, const Place *place, FILE *said)
{
	pid_t pid = fork();
	if (pid == 0) {
		dup2(fileno(said), 2);
		alarm(60);
		on_exit(leave_at_once, NULL);
		body(place);
		exit(0);
	}
	return pid;
}

static inline void run_ranks(int ranks, Ended *ended, Body *body,
	void *context)
{
	pid_t pid[MOST];
	FILE *said[MOST];
	Place place = { 0, ranks, meeting_here(), context };
	fflush(NULL);
	for (int r = 0; r < ranks; r++) {
		place.rank = r;
		said[r] = tmpfile();
		pid[r] = fork_rank(body, &place, said[r]);
	}
	meeting_close(&place.meeting);
	for (int r = 0; r < ranks; r++) {
		int status;
		waitpid(pid[r], &status, WUNTRACED);
		ended[r].status = WIFEXITED(status) ? WEXITSTATUS(status)
			: -(WIFSTOPPED(status) ? WSTOPSIG(status) : WTERMSIG(status));
	}
	for (int r = 0; r < ranks; r++) {
		if (ended[r].status == -SIGSTOP) {
			kill(pid[r], SIGKILL);
			waitpid(pid[r], NULL, 0);
		}
		rewind(said[r]);
		size_t n = fread(ended[r].said, 1, sizeof ended[r].said - 1, said[r]);
		ended[r].said[n] = '\0';
		fclose(said[r]);
	}
}

/* with 1, 2, 3 and 4 ranks; all must exit with 0 and say nothing */
static inline void all_well(Body *body, void *context)
{
	for (int ranks = 1; ranks <= MOST; ranks++) {
		Ended ended[MOST];
		run_ranks(ranks, ended, body, context);
		for (int r = 0; r < ranks; r++) {
			if (ended[r].status != 0 || ended[r].said[0])
				print_error("%d ranks, rank %d ends with %d: %s\n", ranks, r,
					ended[r].status, ended[r].said);
			assert_int_equal(ended[r].status, 0);
			assert_string_equal(ended[r].said, "");
		}
	}
}

#endif
