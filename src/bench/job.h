/* job.h: other programs, and this one as ranks of a job, started by a row */
#ifndef BENCH_JOB_H
#define BENCH_JOB_H

#include "bench/row.h"

/* starts a command of the shell; its output is the caller's to read and pclose */
FILE *job_start(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* a row that says with which status of pclose it ended; said: its first line */
void  job_skip(Row *row, const char *who, int status, const char *said);
/* the rows of this program on a CPU, started by the launcher ("mpirun -n 2") with
 * arguments that plan the row's configuration and no other, or one that says
 * why there are none; after limit_s seconds the job is ended */
void  job_rows(Row *row, long ranks, long limit_s, const char *launcher,
	const char *arguments, ...) __attribute__((format(printf, 5, 6)));

#endif
