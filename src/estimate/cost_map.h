/* cost_map.h: machines of data sheets, and the best way to divide a step */
#ifndef ESTIMATE_COST_MAP_H
#define ESTIMATE_COST_MAP_H

#include "estimate/cost.h"

typedef struct CostSheet {
	const char *name;
	double TFLOPs, GBps, memory_GB;  /* dense bf16; memory */
	double near_GBps, far_GBps;      /* a device sends, in a node and beyond */
	long node;                       /* devices */
} CostSheet;

enum { MAP_SHEETS = 4 };             /* maps show the first ones */
/* sets *sheets to the list; returns how many */
int         cost_sheets(const CostSheet **sheets);
/* NULL: no sheet has this name */
const CostSheet *cost_sheet(const char *name);

/* the parts of a sheet's rates that are reached */
typedef struct CostReached {
	double TFLOPs, GBps, link;
	CostMachine constants;           /* the constants that are no rates */
} CostReached;
/* fitted: constants of the machine that the sheet describes */
CostReached cost_reached(const CostMachine *fitted, const CostSheet *sheet);
/* a machine that reaches the same parts of another sheet's rates */
CostMachine cost_machine(const CostSheet *sheet, const CostReached *reached);

typedef struct CostModel {
	const char *name;
	CostShape shape;
	long context;
} CostModel;
/* sets *models to the list; returns how many */
int         cost_models(const CostModel **models);

typedef struct CostChoice {
	bool found;                      /* false: nothing fits or divides */
	CostRun run;
	CostStep step;
	long tried;
} CostChoice;
/* the strategy with the shortest step. sequences: of the model's context, in a
 * step of all devices; pipeline: stages are tried too */
CostChoice  cost_choose(const CostMachine *m, const CostModel *model,
	long devices, long sequences, bool pipeline);
/* "fsdp tp8": strategy and other dimensions of the division; returns text */
const char *cost_choice_name(const CostRun *r, char text[64]);

#endif
