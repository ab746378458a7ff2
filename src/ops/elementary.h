/* elementary.h: elementary operations: maps and folds of arrays, one at a
 * time */
#ifndef OPS_ELEMENTARY_H
#define OPS_ELEMENTARY_H

#include "ops/operand.h"
#include "ops/row_threads.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum Opcode {
#define OPCODE(NAME, OPERANDS, FORMULA) E_##NAME,
#include "ops/opcodes.h"
#undef OPCODE
	NOPCODES
} Opcode;

// declare an elementary operation
typedef enum { FOLD_NONE, FOLD_SUM, FOLD_MAXIMUM, FOLD_COLUMNS } Fold;

/* FOLD_NONE: y[out(i)] = op(in ...) for i < n. FOLD_SUM, FOLD_MAXIMUM:
 * y[out(row)] is the sum or maximum of op(in ...) over the C elements of a
 * row, of which there are n / C. FOLD_COLUMNS: y[column] += the sum of op(in
 * ...) over all rows. y may be an operand at the same index. A map does
 * nothing when *skip is not 0; skip may be NULL, and is NULL for folds */
typedef struct Elementary {
	Opcode op;
	Fold fold;
	size_t n, C;
	Array y;
	Index out;
	Operand in[MOST_OPERANDS];
	const int32_t *skip;
} Elementary;

int  opcode_operands(Opcode op);
/* n elements of TYPE_REAL for the steps of one formula; the caller frees
 * them by device_free. Under a deferral they may never get memory */
Array elementary_scratch(Device *d, size_t n, const char *what);

#ifdef __cplusplus
}
#endif

#endif
