/* peer.h: rows that PyTorch measures, by src/experiments/pytorch_peer.py */
#ifndef EXPERIMENTS_PEER_H
#define EXPERIMENTS_PEER_H

#include "experiments/harness.h"

/* runs the script with these arguments for limit_s seconds at most, and sets
 * those of the columns (blanks between) that it answers, as column=value, and
 * the status; also when it could not run */
void peer_measure(Row *row, const char *columns, long limit_s,
	const char *arguments, ...) __attribute__((format(printf, 4, 5)));

#endif
