/* collective_case.h: a collective on integers whose sums are known: checked,
 * timed, checked again */
#ifndef CASES_COLLECTIVE_CASE_H
#define CASES_COLLECTIVE_CASE_H

#include "base/stats.h"
#include "bench/row.h"
#include "dist/comm.h"

#define COLLECTIVES_OF(FIRST, NEXT) \
	FIRST(ALL_REDUCES, "all-reduce") \
	NEXT(REDUCE_SCATTERS, "reduce-scatter") \
	NEXT(ALL_GATHERS, "all-gather") NEXT(BROADCASTS, "broadcast")
#define COLLECTIVES CHOICES(COLLECTIVES_OF)
enum { CHOICE_IDS(COLLECTIVES_OF) MEASURED_COLLECTIVES };

typedef struct CollectiveCase {
	Comm *comm;
	Device *device;
	int collective;                  /* of COLLECTIVES; broadcasts by rank 0 */
	Type type;                       /* FP32 or BF16 */
	int runs;                        /* measured, at most */
	uint64_t salt;                   /* of the integers */
	size_t n;                        /* elements; set by collective_rows */
	Array x, drawn;                  /* (n) each; set by collective_rows */
} CollectiveCase;

/* of runs: batches of so many collectives. NaN: not known */
typedef struct CollectiveTime { Stats ms; int batch; } CollectiveTime;
/* emits the row of a size, in bytes on the wire; factor: collective_factor */
void collective_row(Row *row, double bytes, const CollectiveTime *t,
	double factor);
/* emits a row for each of nsizes sizes, in bytes on the wire; ends the program
 * when an element is wrong */
void collective_rows(Row *row, CollectiveCase *c, const long *sizes, int nsizes);

/* the name of one of COLLECTIVES */
const char *collective_name(int collective);
/* the bytes that a rank must send, as a multiple of the bytes of the array */
double collective_factor(int collective, int ranks);
/* to: (n); to[i] = the sum of the integers, -4 ... 3 each, that ranks first ...
 * end - 1 draw for element at + i */
void   integers_draw(real *to, size_t at, size_t n, uint64_t salt, int first,
	int end);
/* how many of x, (n), are not exactly what integers_draw gives */
size_t integers_wrong(const real *x, size_t at, size_t n, uint64_t salt,
	int first, int end);

#endif
