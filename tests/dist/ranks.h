/* ranks.h: runs a function in several processes, which can meet */
#ifndef TESTS_RANKS_H
#define TESTS_RANKS_H

#include <signal.h>
#include <string.h>

#include "dist/link.h"
#include "tests/base/exits.h"

enum { MOST = 4 };

// declare a place, and how a rank ended

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

// fork a rank
static inline pid_t fork_rank(Body *body, const Place *place, FILE *said)
{
	const char *limit = getenv("TEST_TIMEOUT");
	pid_t pid = fork();
	if (pid == 0) {
		dup2(fileno(said), 2);
		alarm(limit ? atoi(limit) : 60);
		on_exit(leave_at_once, NULL);
		body(place);
		exit(0);
	}
	return pid;
}

// note how ranks end, and what they say
static inline void await_ranks(const pid_t *pid, int ranks, Ended *ended)
{
	for (int r = 0; r < ranks; r++) {
		int status;
		waitpid(pid[r], &status, WUNTRACED);
		ended[r].status = WIFEXITED(status) ? WEXITSTATUS(status)
			: -(WIFSTOPPED(status) ? WSTOPSIG(status) : WTERMSIG(status));
	}
	for (int r = 0; r < ranks; r++)
		if (ended[r].status == -SIGSTOP) {
			kill(pid[r], SIGKILL);
			waitpid(pid[r], NULL, 0);
		}
}

static inline void read_said(FILE *said, Ended *ended)
{
	rewind(said);
	size_t n = fread(ended->said, 1, sizeof ended->said - 1, said);
	ended->said[n] = '\0';
	fclose(said);
}

// run a function in every rank
static inline void run_ranks(int ranks, Ended *ended, Body *body,
	void *context)
{
	pid_t pid[MOST];
	FILE *said[MOST];
	Place place = { 0, ranks, meeting_here(), context };
	fflush(NULL);
	for (int r = 0; r < ranks; r++) {
		place.rank = r;
		said[r] = memory_file();
		pid[r] = fork_rank(body, &place, said[r]);
	}
	meeting_close(&place.meeting);
	await_ranks(pid, ranks, ended);
	for (int r = 0; r < ranks; r++)
		read_said(said[r], &ended[r]);
}

// ranks end well, or all with the same words
static inline void all_end(int ranks, Body *body, void *context, int status,
	const char *words)
{
	Ended ended[MOST];
	run_ranks(ranks, ended, body, context);
	for (int r = 0; r < ranks; r++) {
		const char *said = ended[r].said, *end = strchr(said, '\n');
		bool as_told = status == 0 ? !said[0]
			: strstr(said, words) && end && !end[1];
		if (ended[r].status != status || !as_told)
			fail_msg("rank %d of %d ends with %d, not %d, and says '%s', not "
				"'%s'", r, ranks, ended[r].status, status, said, words);
	}
}

static inline void run_well(int ranks, Body *body, void *context)
{
	all_end(ranks, body, context, 0, "");
}

/* with 1, 2, 3 and 4 ranks */
static inline void all_well(Body *body, void *context)
{
	for (int ranks = 1; ranks <= MOST; ranks++)
		run_well(ranks, body, context);
}

#endif
