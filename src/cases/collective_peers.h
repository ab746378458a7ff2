/* collective_peers.h: collectives by programs that are started for it, by others
 * all-reduces; a row for each size, or one that says why there are none */
#ifndef CASES_COLLECTIVE_PEERS_H
#define CASES_COLLECTIVE_PEERS_H

#include <stdbool.h>

#include "bench/row.h"

/* the measurement that a peer is asked for */
typedef struct PeerCase {
	const char *device, *dtype;      /* "cpu" or "cuda", "fp32" or "bf16" */
	long ranks, runs, limit_s;
	const long *sizes;               /* (nsizes), in bytes */
	int nsizes;
} PeerCase;

/* all-reduces of PyTorch with Gloo, on tensors of the CPU or of GPUs */
void gloo_rows(Row *row, const PeerCase *c);
/* all-reduces of nccl-tests: all_reduce_perf in the folder or in its build/;
 * by_mpi: a process for each GPU, else one for all */
void nccl_tests_rows(Row *row, const PeerCase *c, const char *folder,
	bool by_mpi);
/* rows of this program, started by the launcher as the ranks of a job (see
 * job.h) */
void collective_job_rows(Row *row, const PeerCase *c, const char *launcher,
	const char *arguments);

#endif
