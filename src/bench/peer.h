/* peer.h: rows that PyTorch measures, by a script in src/experiments */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include "bench/row.h"

/* runs the script with these arguments for limit_s seconds at most; a line of
 * its answer sets columns (blanks between) and the status, as column=value, and
 * is a row. There is one too when it could not run */
void peer_measure(Row *row, const char *columns, long limit_s,
	const char *script, const char *arguments, ...)
	__attribute__((format(printf, 5, 6)));

#endif
