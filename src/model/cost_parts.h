/* cost_parts.h: the units of a step, between the files of model/cost.h */
#ifndef MODEL_COST_PARTS_H
#define MODEL_COST_PARTS_H

#include "model/cost.h"

enum { COST_TENSORS = 9 };           /* of a block, as in model/shape.h */
typedef enum { UNIT_EMBEDDING, UNIT_BLOCK, UNIT_HEAD } CostUnit;

/* elements of a block; of its tensors, 0: absent. tensors: or NULL */
double cost_block_tensors(const CostShape *s, double tensors[COST_TENSORS]);
/* of a device: its blocks, its elements, a pass over a unit, and the collectives
 * that the pass waits for */
int    cost_blocks(const CostRun *r);
double cost_elements(const CostRun *r);
double cost_unit_ms(const CostMachine *m, const CostRun *r, CostUnit unit,
	bool backward);
double cost_tensor_ms(const CostMachine *m, const CostRun *r, CostUnit unit,
	bool backward);
/* those that sum gradients with it */
CostGroup cost_data_group(const CostMachine *m, const CostRun *r);

#endif
