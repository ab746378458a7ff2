#define _GNU_SOURCE
#include "cases/collective_peers.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/error.h"
#include "base/process.h"
#include "bench/job.h"
#include "bench/peer.h"
#include "cases/collective_case.h"

// start PyTorch
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
	peer_measure(row, c->limit_s, "pytorch_collectives.py",
		"--device %s --dtype %s --ranks %ld --sizes %s --runs %ld", c->device,
		c->dtype, c->ranks, sizes_text(c), c->runs);
}

// start nccl-tests
/* sets a row from a line of its table; false: the line holds none */
static bool read_row_line(Row *row, const PeerCase *c, const char *line)
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
	collective_row(row, bytes, &(CollectiveTime){ { .n = 1, .sd = NAN,
		.min = NAN, .median = us * 1e-3 }, (int)c->runs },
		collective_factor(ALL_REDUCES, (int)c->ranks));
	return true;
}

// choose the runs that cover all sizes
static bool sizes_covered(const PeerCase *c, int i)
{
	for (int j = 0; j < c->nsizes; j++)
		for (long size = c->sizes[j]; size <= c->sizes[i]; size *= 10)
			if (size == c->sizes[i] && (j < i || size > c->sizes[j]))
				return true;
	return false;
}

static long largest(const PeerCase *c)
{
	long most = 0;
	for (int i = 0; i < c->nsizes; i++)
		most = c->sizes[i] > most ? c->sizes[i] : most;
	return most;
}

// run nccl-tests and read its table
static const char run_all_reduce_perf[] =
	"set -- %s/all_reduce_perf %s/build/all_reduce_perf; [ -x \"$1\" ] || shift; "
	"p=$1; g=%ld; set -- \"$p\"; export NCCL_NVLS_ENABLE=0; "
	"if %s; then ldd \"$p\" | grep -q libmpi || exit 9; "
	"export " MPIRUN_VARIABLES "; "
	"set -- " MPIRUN " --bind-to none -n $g \"$p\"; g=1; fi; "
	"timeout %ld \"$@\" -g $g -d %s -b %ld -e %ld -f 10 -w 5 -n %ld -c 1";

void nccl_tests_rows(Row *row, const PeerCase *c, const char *folder,
	bool by_mpi)
{
	bool low = strcmp(c->dtype, "bf16") == 0, any = true;
	char *line = NULL, *word = process_word(folder);
	size_t capacity = 0;
	for (int i = 0; i < c->nsizes && any; i++) {
		if (sizes_covered(c, i))
			continue;
		FILE *from = job_start(run_all_reduce_perf, word, word, c->ranks,
			by_mpi ? "true" : "false", c->limit_s, low ? "bfloat16" : "float",
			c->sizes[i], largest(c), c->runs);
		any = false;
		while (getline(&line, &capacity, from) > 0)
			any |= read_row_line(row, c, line);
		int status = pclose(from);
		if (!any)
			job_skip(row, "nccl-tests", status, WEXITSTATUS(status) == 9
				? "built without MPI" : "");
	}
	free(word);
	free(line);
}

// start this program again for collectives
void collective_job_rows(Row *row, const PeerCase *c, const char *launcher,
	const char *arguments)
{
	job_rows(row, c->ranks, c->limit_s, launcher, "--dtype %s --bytes %s "
		"--runs %ld %s", c->dtype, sizes_text(c), c->runs, arguments);
}
