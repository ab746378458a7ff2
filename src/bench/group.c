#define _GNU_SOURCE
#include "bench/group.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

typedef struct Member {
	pid_t pid;
	int pipe;                 /* -1: the process has ended */
	siginfo_t end;
	FILE *copy;               /* of what came through the pipe: text[n] */
	char *text;
	size_t n;
} Member;

static void fork_member(Member *m, pid_t leader, int rank,
	void (*body)(void *arg, int rank, FILE *to), void *arg)
{
	int ends[2];
	pid_t parent = getpid();
	fflush(NULL);
	if (pipe2(ends, O_CLOEXEC) != 0)
		die("pipe: %s", strerror(errno));
	m->pid = fork();
	if (m->pid < 0)
		die("fork: %s", strerror(errno));
	if (m->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);                       /* it died before */
		setpgid(0, leader);
		close(ends[0]);
		body(arg, rank, need(fdopen(ends[1], "w")));
		fflush(NULL);
		_exit(0);
	}
	setpgid(m->pid, leader ? leader : m->pid);
	close(ends[1]);
	m->pipe = ends[0];
	m->copy = need(open_memstream(&m->text, &m->n));
}
/* false: nothing more will come */
static bool read_some(Member *m)
{
	char some[4096];
	ssize_t n;
	while ((n = read(m->pipe, some, sizeof some)) < 0 && errno == EINTR)
		;
	if (n > 0) {
		fwrite(some, 1, (size_t)n, m->copy);
		return true;
	}
	close(m->pipe);
	m->pipe = -1;
	while (waitid(P_PID, m->pid, &m->end, WEXITED | WNOWAIT) < 0
		&& errno == EINTR)
		;
	fflush(m->copy);
	return false;
}

static bool exited_with(const Member *m, int status)
{
	return m->end.si_code == CLD_EXITED && m->end.si_status == status;
}
/* milliseconds as poll takes them; -1: any time */
static int time_left(double end_ms)
{
	double left = end_ms - clock_ms();
	return end_ms == 0 ? -1 : left > 0 ? (int)left + 1 : 0;
}
/* the first member that ended badly, or has not ended in time; NULL: none */
static Member *watch(Member *members, int ranks, int limit_s)
{
	double end_ms = limit_s ? clock_ms() + limit_s * 1e3 : 0;
	struct pollfd pipes[MOST_RANKS];
	for (int running = ranks; running > 0;) {
		for (int i = 0; i < ranks; i++)     /* those at -1 are passed over */
			pipes[i] = (struct pollfd){ members[i].pipe, POLLIN, 0 };
		int ready = poll(pipes, ranks, time_left(end_ms));
		if (ready < 0 && errno != EINTR)
			die("poll: %s", strerror(errno));
		for (int i = 0; i < ranks && ready >= 0; i++) {
			Member *m = &members[i];
			if (ready == 0 && m->pipe >= 0)
				return m;
			if (pipes[i].revents == 0 || read_some(m))
				continue;
			if (!exited_with(m, 0) || m->n == 0)
				return m;
			running--;
		}
	}
	return NULL;
}
/* kills the group, reads the rest; returns who is to be named */
static Member *end_group(Member *members, int ranks, Member *bad)
{
	kill(-members[0].pid, SIGKILL);
	for (Member *m = members; m < members + ranks; m++) {
		bool late = m == bad && m->pipe >= 0;
		while (m->pipe >= 0 && read_some(m))
			;
		if (late)
			m->end.si_code = 0;             /* not its own end */
		else if (exited_with(m, EXIT_OUT_OF_MEMORY))
			bad = m;
	}
	return bad;
}
static End judge(const Member *m, int limit_s, char *how, size_t size)
{
	if (exited_with(m, EXIT_OUT_OF_MEMORY) && m->n > 0)
		return OUT_OF_MEMORY;
	if (m->end.si_code == CLD_KILLED && m->end.si_status == SIGKILL)
		return KILLED;
	if (m->end.si_code == 0)
		snprintf(how, size, "more than %d s", limit_s);
	else if (exited_with(m, 0))
		snprintf(how, size, "no row");
	else
		snprintf(how, size, "%s %d", m->end.si_code == CLD_EXITED
			? "exit status" : "signal", m->end.si_status);
	return FAILED;
}
static char *whole_lines(const Member *m)
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

static char *join_lines(const Member *first, const Member *other)
{
	char *a = whole_lines(first), *b = whole_lines(other), *lines;
	if (asprintf(&lines, "%s%s", a, other == first ? "" : last_line(b)) < 0)
		die("out of host memory");
	free(a);
	free(b);
	return lines;
}
Outcome group_run(int ranks, int limit_s,
	void (*body)(void *arg, int rank, FILE *to), void *arg)
{
	Member members[MOST_RANKS] = { 0 };
	assert(1 <= ranks && ranks <= MOST_RANKS);
	for (int i = 0; i < ranks; i++)
		fork_member(&members[i], members[0].pid, i, body, arg);
	Member *bad = watch(members, ranks, limit_s);
	Outcome o = { ENDED_WELL, 0, "", NULL };
	if (bad) {
		bad = end_group(members, ranks, bad);
		o.rank = (int)(bad - members);
		o.end = judge(bad, limit_s, o.how, sizeof o.how);
	}
	o.lines = join_lines(members, o.end == OUT_OF_MEMORY ? bad : members);
	for (int i = 0; i < ranks; i++) {
		waitpid(members[i].pid, NULL, 0);
		fclose(members[i].copy);
		free(members[i].text);
	}
	return o;
}
