/* cost_unit.h: what one unit of a model takes, in ms */
#ifndef ESTIMATE_COST_UNIT_H
#define ESTIMATE_COST_UNIT_H

#include "estimate/cost_machine.h"
#include "estimate/cost_run.h"

// declare the units of a run
enum { COST_TENSORS = 9 };           /* tensors of a block, as in model/shape.h */
typedef enum { UNIT_EMBEDDING, UNIT_BLOCK, UNIT_HEAD } CostUnit;

/* elements of a block; sets the elements of each of its tensors, 0 for one
 * that is absent, unless tensors is NULL */
double cost_block_tensors(const CostShape *s, double tensors[COST_TENSORS]);
/* blocks and elements of one device; ms of its pass over a unit; ms of the
 * collectives that the pass waits for */
int    cost_blocks(const CostRun *r);
double cost_elements(const CostRun *r);
double cost_unit_ms(const CostMachine *m, const CostRun *r, CostUnit unit,
	bool backward);
double cost_tensor_ms(const CostMachine *m, const CostRun *r, CostUnit unit,
	bool backward);
/* ms of the optimizer; m is not read if r->opt_ms > 0 */
double cost_update_ms(const CostMachine *m, const CostRun *r);
/* the devices that sum gradients with one another */
CostGroup cost_data_group(const CostMachine *m, const CostRun *r);

#endif
