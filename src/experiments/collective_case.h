/* collective_case.h: a collective on integers whose sums are known: checked,
 * timed, checked again */
#ifndef EXPERIMENTS_COLLECTIVE_CASE_H
#define EXPERIMENTS_COLLECTIVE_CASE_H

#include "bench/row.h"
#include "dist/comm.h"

#define COLLECTIVES "all-reduce|reduce-scatter|all-gather|broadcast"
enum { ALL_REDUCES, REDUCE_SCATTERS, ALL_GATHERS, BROADCASTS };

/* columns that collective_rows sets, in a row for each size */
#define COLLECTIVE_VALUES "bytes time_ms time_sd_ms time_min_ms algbw_GBps " \
	"busbw_GBps batch runs"

typedef struct CollectiveCase {
	Comm *comm;
	Device *device;
	int collective;                  /* of COLLECTIVES; broadcasts by rank 0 */
	Type type;                       /* FP32 or BF16 */
	int runs;                        /* measured, at most */
	uint64_t salt;                   /* of the integers */
	size_t n;                        /* set by what follows */
	Array x, drawn;
} CollectiveCase;

/* emits a row for each of nsizes sizes, in bytes on the wire; ends the program
 * when an element is wrong */
void collective_rows(Row *row, CollectiveCase *c, const long *sizes, int nsizes);

/* its name among COLLECTIVES */
const char *collective_name(int collective);
/* what a rank must have sent, over the bytes of the array */
double collective_factor(int collective, int ranks);
/* to[i] = the sum of the integers of ranks first ... end - 1 for element at + i,
 * -4 ... 3 each */
void   integers_draw(real *to, size_t at, size_t n, uint64_t salt, int first,
	int end);
/* how many of x are not exactly these */
size_t integers_wrong(const real *x, size_t at, size_t n, uint64_t salt,
	int first, int end);

#endif
