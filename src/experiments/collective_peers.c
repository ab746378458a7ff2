#define _GNU_SOURCE
#include "experiments/collective_peers.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "bench/peer.h"
#include "experiments/collective_case.h"

static const char *sizes_text(const PeerCase *c)
{
	static char text[512];
	size_t n = 0;
	for (int i = 0; i < c->nsizes; i++)
		n += snprintf(text + n, sizeof text - n, "%s%ld", i ? "," : "",
			c->sizes[i]);
	return text;
}

void gloo_rows(Row *row, const PeerCase *c)
{
	peer_measure(row, COLLECTIVE_VALUES, c->limit_s, "pytorch_collectives.py",
		"--device %s --dtype %s --ranks %ld --sizes %s --runs %ld", c->device,
		c->dtype, c->ranks, sizes_text(c), c->runs);
}
static FILE *start(const char *format, ...) __attribute__((format(printf, 1, 2)));
static FILE *start(const char *format, ...)
{
	char *command;
	va_list args;
	va_start(args, format);
	if (vasprintf(&command, format, args) < 0)
		die("out of host memory");
	va_end(args);
	FILE *from = need(popen(command, "r"));
	free(command);
	return from;
}

/* said: its first line */
static void skip(Row *row, const char *who, int status, const char *said)
{
	row_set(row, "status", "skipped: %s ended with %d%s%s", who,
		WIFEXITED(status) ? WEXITSTATUS(status) : -1, *said ? ": " : "", said);
	row_emit(row);
}
/* a line of its table; false: it is another line */
static bool take_line(Row *row, const PeerCase *c, const char *line)
{
	long bytes;
	double us, algbw, busbw;
	char wrong[16];
	if (sscanf(line, "%ld %*s %*s %*s %*s %*s %*s %*s %*s %lf %lf %lf %15s",
		&bytes, &us, &algbw, &busbw, wrong) != 5)
		return false;
	if (strcmp(wrong, "0") != 0)
		die("nccl-tests: %s elements of %ld bytes are wrong", wrong, bytes);
	bool asked = false;
	for (int i = 0; i < c->nsizes; i++)
		asked = asked || c->sizes[i] == bytes;
	if (!asked)
		return false;
	row_set(row, "bytes", "%ld", bytes);
	row_set(row, "time_ms", "%.5g", us * 1e-3);
	row_set(row, "algbw_GBps", "%.5g", bytes / us * 1e-3);
	row_set(row, "busbw_GBps", "%.5g",
		bytes / us * 1e-3 * collective_factor(ALL_REDUCES, (int)c->ranks));
	row_set(row, "batch", "%ld", c->runs);
	row_set(row, "runs", "1");
	row_emit(row);
	return true;
}

static bool covered(const PeerCase *c, int i)
{
	for (int j = 0; j < i; j++)
		for (long size = c->sizes[j]; size <= c->sizes[i]; size *= 10)
			if (size == c->sizes[i])
				return true;
	return false;
}

static const char run_all_reduce_perf[] =
	"p='%s'/all_reduce_perf; [ -x $p ] || p='%s'/build/all_reduce_perf; g=%ld; "
	"export NCCL_NVLS_ENABLE=0; if %s; then ldd $p | grep -q libmpi || exit 9; "
	"export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; "
	"p=\"mpirun --bind-to none --oversubscribe -n $g $p\"; g=1; fi; "
	"timeout %ld $p -g $g -d %s -b %ld -e %ld -f 10 -w 5 -n %ld -c 1";

void nccl_tests_rows(Row *row, const PeerCase *c, const char *folder,
	bool by_mpi)
{
	bool low = strcmp(c->dtype, "bf16") == 0, any = true;
	char *line = NULL;
	size_t capacity = 0;
	for (int i = 0; i < c->nsizes && any; i++) {
		if (covered(c, i))
			continue;
		FILE *from = start(run_all_reduce_perf, folder, folder, c->ranks,
			by_mpi ? "true" : "false", c->limit_s, low ? "bfloat16" : "float",
			c->sizes[i], c->sizes[c->nsizes - 1], c->runs);
		any = false;
		while (getline(&line, &capacity, from) > 0)
			any |= take_line(row, c, line);
		int status = pclose(from);
		if (!any)
			skip(row, "nccl-tests", status, WEXITSTATUS(status) == 9
				? "built without MPI" : "");
	}
	free(line);
}
/* rows of the table that begin with the row's own keys; returns how many */
static int copy_rows(Row *row, const char *path)
{
	int n = 0;
	char *line = NULL;
	size_t capacity = 0;
	FILE *f = fopen(path, "r");
	while (f && getline(&line, &capacity, f) > 0) {
		if (*line == '#' || strncmp(line, row->columns,
			strcspn(row->columns, " ")) == 0)
			continue;
		fputs(line, row->to);
		n++;
	}
	if (f)
		fclose(f);
	free(line);
	row->emitted = row->emitted || n > 0;
	return n;
}

void job_rows(Row *row, const PeerCase *c, const char *launcher,
	const char *arguments)
{
	char self[4096] = "", folder[] = "/tmp/collectives.XXXXXX", said[160] = "";
	char *table, *line = NULL;
	size_t capacity = 0;
	if (readlink("/proc/self/exe", self, sizeof self - 1) < 0
			|| mkdtemp(folder) == NULL)
		die("cannot start %s", launcher);
	if (asprintf(&table, "%s/rows.tsv", folder) < 0)
		die("out of host memory");
	FILE *from = start("OMPI_ALLOW_RUN_AS_ROOT=1 "
		"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=%d "
		"timeout -k 5 %ld %s %s --device cpu --ranks %ld --dtype %s --bytes %s "
		"--runs %ld --out %s %s 2>&1",
		c->ranks > sysconf(_SC_NPROCESSORS_ONLN), c->limit_s, launcher, self,
		c->ranks, c->dtype, sizes_text(c), c->runs,
		table, arguments);
	while (getline(&line, &capacity, from) > 0)
		if (*said == '\0' && strspn(line, " -\n") < strlen(line))
			snprintf(said, sizeof said, "%.*s", (int)strcspn(line, "\n"), line);
	int status = pclose(from);
	if (copy_rows(row, table) == 0)
		skip(row, launcher, status, said);
	unlink(table);
	rmdir(folder);
	free(table);
	free(line);
}
