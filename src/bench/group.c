#define _GNU_SOURCE
#include "bench/group.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

typedef struct RankProcess {
	pid_t pid;
	int pipe;                 /* -1: the process has ended */
	siginfo_t end;
	char *doing;              /* shared with the process */
	FILE *copy;               /* of what came through the pipe, into text[n] */
	char *text;
	size_t n;
} RankProcess;

// fork a member of the group
static void fork_member(RankProcess *m, pid_t leader, int rank, GroupBody *body,
	void *arg)
{
	int ends[2];
	pid_t parent = getpid();
	fflush(NULL);
	if (pipe2(ends, O_CLOEXEC) != 0)
		die("pipe: %s", strerror(errno));
	m->pid = fork();
	if (m->pid < 0)
		die("fork: %s", strerror(errno));
	// run the body as a rank, in the child
	if (m->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);                       /* it died before */
		setpgid(0, leader);
		close(ends[0]);
		body(arg, rank, m->doing, need(fdopen(ends[1], "w")));
		fflush(NULL);
		_exit(0);
	}
	setpgid(m->pid, leader ? leader : m->pid);
	close(ends[1]);
	m->pipe = ends[0];
	m->copy = need(open_memstream(&m->text, &m->n));
}

// read what a member writes, and see how it ended
static void read_output(RankProcess *m)
{
	char some[4096];
	ssize_t n;
	while ((n = read(m->pipe, some, sizeof some)) < 0 && errno == EINTR)
		;
	if (n > 0) {
		fwrite(some, 1, (size_t)n, m->copy);
		return;
	}
	close(m->pipe);
	m->pipe = -1;
	while (waitid(P_PID, m->pid, &m->end, WEXITED | WNOWAIT) < 0
		&& errno == EINTR)
		;
	fflush(m->copy);
}

static bool exited_with(const RankProcess *m, int status)
{
	return m->end.si_code == CLD_EXITED && m->end.si_status == status;
}

static bool ended_well(const RankProcess *m)
{
	return exited_with(m, 0) && m->n > 0;
}

// watch the group until all have ended, or one badly
/* reads what members write; false: it is too late, or all have ended */
static bool wait_for_output(RankProcess *members, int ranks, Patience *p)
{
	struct pollfd pipes[MOST_RANKS];
	int running = 0;
	for (int i = 0; i < ranks; i++) {           /* those at -1 are passed over */
		pipes[i] = (struct pollfd){ members[i].pipe, POLLIN, 0 };
		running += members[i].pipe >= 0;
	}
	if (running == 0)
		return false;
	int ready = poll(pipes, ranks, patience_poll_ms(p));
	if (ready < 0 && errno != EINTR)
		die("poll: %s", strerror(errno));
	for (int i = 0; i < ranks && ready > 0; i++)
		if (pipes[i].revents)
			read_output(&members[i]);
	return patience_left(p) > 0;
}

/* returns the first process that ended badly, or has not ended in time; NULL: all
 * have ended well */
static RankProcess *watch_group(RankProcess *members, int ranks, int limit_s)
{
	Patience p = patience_of(limit_s ? limit_s * 1e3 : INFINITY);
	bool more = true;
	while (more) {
		more = wait_for_output(members, ranks, &p);
		for (RankProcess *m = members; m < members + ranks; m++)
			if (m->pipe < 0 && !ended_well(m))
				return m;
	}
	for (RankProcess *m = members; m < members + ranks; m++)
		if (m->pipe >= 0)
			return m;
	return NULL;
}

// find the member that others complain of
static int signal_that_stopped(const RankProcess *m)
{
	siginfo_t state = { 0 };
	if (m->pipe < 0 || waitid(P_PID, m->pid, &state,
		WSTOPPED | WNOHANG | WNOWAIT) < 0)
		return 0;
	return state.si_code == CLD_STOPPED ? state.si_status : 0;
}

// rank the suspects
/* how likely it is that the others complain of this process; first: the
 * process that was first seen to end badly */
static int suspicion(const RankProcess *m, const RankProcess *first)
{
	if (exited_with(m, EXIT_OUT_OF_MEMORY))
		return 5;
	if (m->end.si_code == CLD_KILLED || m->end.si_code == CLD_DUMPED)
		return 4;
	if (signal_that_stopped(m))
		return 3;
	if (exited_with(m, 0) && m->n == 0)
		return 2;
	return m->pipe >= 0 && first->pipe < 0 && *first->doing
		&& strncmp(m->doing, first->doing, DOING) != 0;
}

/* first: the process that was first seen to end badly, or not to end in time */
static RankProcess *find_culprit(RankProcess *members, int ranks,
	RankProcess *first)
{
	enum { A_MOMENT_MS = 500 };
	Patience p = patience_of(A_MOMENT_MS);
	RankProcess *culprit = first;
	while (first->pipe < 0 && wait_for_output(members, ranks, &p))
		;
	if (exited_with(members, EXIT_OUT_OF_MEMORY))
		return members;
	for (RankProcess *m = members; m < members + ranks; m++)
		if (suspicion(m, first) > suspicion(culprit, first))
			culprit = m;
	return culprit;
}

// end the group, and judge it
static void describe_end(const RankProcess *m, bool late, int limit_s, char *how,
	size_t size)
{
	int stop = signal_that_stopped(m);
	if (stop)
		snprintf(how, size, "stopped by signal %d", stop);
	else if (m->pipe >= 0 && late)
		snprintf(how, size, "more than %d s", limit_s);
	else if (m->pipe >= 0)
		snprintf(how, size, "hangs");
	else if (exited_with(m, 0))
		snprintf(how, size, "no row");
	else
		snprintf(how, size, "%s %d", m->end.si_code == CLD_EXITED
			? "exit status" : "signal", m->end.si_status);
	size_t n = strlen(how);
	if (*m->doing)
		snprintf(how + n, size - n, ", in %.*s", DOING, m->doing);
}

// classify how a process ended, and kill the group
static End classify_end(const RankProcess *m, int ranks)
{
	if (exited_with(m, EXIT_OUT_OF_MEMORY) && m->n > 0)
		return OUT_OF_MEMORY;
	if (ranks == 1 && m->end.si_code == CLD_KILLED && m->end.si_status == SIGKILL)
		return KILLED;
	return FAILED;
}

static void kill_group(RankProcess *members, int ranks)
{
	kill(-members[0].pid, SIGKILL);
	for (RankProcess *m = members; m < members + ranks; m++)
		while (m->pipe >= 0)
			read_output(m);
}

// collect the lines of a group
static char *whole_lines(const RankProcess *m)
{
	size_t n = m->n;
	while (n > 0 && m->text[n - 1] != '\n')
		n--;
	return need(strndup(m->text, n));
}

static const char *last_line(const char *lines)
{
	const char *last = lines;
	for (const char *c = lines; *c; c++)
		if (*c == '\n' && c[1])
			last = c + 1;
	return last;
}

static char *join_lines(const RankProcess *first, const RankProcess *other)
{
	char *a = whole_lines(first), *b = whole_lines(other), *lines;
	if (asprintf(&lines, "%s%s", a, other == first ? "" : last_line(b)) < 0)
		die("out of host memory");
	free(a);
	free(b);
	return lines;
}

// run a group of processes
static char *share_memory(size_t nbytes)
{
	void *shared = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	return shared;
}

static void reap_members(RankProcess *members, int ranks)
{
	munmap(members[0].doing, (size_t)ranks * DOING);
	for (RankProcess *m = members; m < members + ranks; m++) {
		waitpid(m->pid, NULL, 0);
		fclose(m->copy);
		free(m->text);
	}
}

Outcome group_run(int ranks, int limit_s, GroupBody *body, void *arg)
{
	RankProcess members[MOST_RANKS] = { 0 }, *bad;
	assert(1 <= ranks && ranks <= MOST_RANKS);
	char *doing = share_memory((size_t)ranks * DOING);
	for (int i = 0; i < ranks; i++) {
		members[i].doing = doing + (size_t)i * DOING;
		fork_member(&members[i], members[0].pid, i, body, arg);
	}
	Outcome o = { ENDED_WELL, 0, "", NULL };
	// find out what went wrong, and end the group
	if ((bad = watch_group(members, ranks, limit_s))) {
		bool late = bad->pipe >= 0;
		bad = find_culprit(members, ranks, bad);
		o.rank = (int)(bad - members);
		o.end = classify_end(bad, ranks);
		describe_end(bad, late, limit_s, o.how, sizeof o.how);
		kill_group(members, ranks);
	}
	o.lines = join_lines(members, o.end == OUT_OF_MEMORY ? bad : members);
	reap_members(members, ranks);
	return o;
}
