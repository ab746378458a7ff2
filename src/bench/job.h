/* job.h: other programs, and this one as ranks of a job, started by a row */
#ifndef BENCH_JOB_H
#define BENCH_JOB_H

#include "bench/row.h"

/* words of the shell: mpirun of the MPI that we are built with, and variables
 * by which any mpirun lets root start more ranks than there are processors */
#ifndef MPIRUN
#define MPIRUN "mpirun"
#endif
#define MPIRUN_VARIABLES "OMPI_ALLOW_RUN_AS_ROOT=1 " \
	"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 " \
	"PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe"

/* starts a command of the shell; the caller reads its output and calls pclose */
FILE *job_start(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* emits a row that says that a command ended with this status of pclose; said:
 * the first line of its output */
void  job_skip(Row *row, const char *who, int status, const char *said);
/* emits the rows of this program on a CPU, started by the launcher ("mpirun -n
 * 2") with arguments that plan the row's configuration and no other, or a row
 * that says why there are none; after limit_s seconds the job is ended */
void  job_rows(Row *row, long ranks, long limit_s, const char *launcher,
	const char *arguments, ...) __attribute__((format(printf, 5, 6)));

#endif
