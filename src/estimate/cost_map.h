/* cost_map.h: machines of data sheets, and the best way to divide a step */
#ifndef ESTIMATE_COST_MAP_H
#define ESTIMATE_COST_MAP_H

#include "base/choices.h"
#include "estimate/cost.h"
#include "model/sizes.h"

typedef struct CostSheet {
	const char *name;
	double TFLOPs, GBps, memory_GB;  /* dense bf16; memory */
	double near_GBps, far_GBps;      /* a device sends, in a node and beyond */
	long node;                       /* devices */
} CostSheet;

/* the machines of maps */
#define MAP_SHEETS_OF(FIRST, NEXT) \
	/*                        TFLOP/s GB/s  GB near  far node */ \
	FIRST(SHEET_H100, "H100",      989, 3350,  80, 450, 50, 8) \
	NEXT(SHEET_H200, "H200",       989, 4800, 141, 450, 50, 8) \
	NEXT(SHEET_B200, "B200",      2250, 8000, 180, 900, 50, 8) \
	NEXT(SHEET_V5P, "TPU v5p",     459, 2765,  95, 180, 6.25, 8960)
enum { CHOICE_IDS(MAP_SHEETS_OF) MAP_SHEETS };
/* these come first; others follow, on which published runs were */
extern const CostSheet cost_sheets[];
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
	long context;
	CostShape shape;
	double fp8;                      /* as of a CostRun */
} CostModel;
/* models of others: context, then the fields of a CostShape in their order */
#define OTHER_MODELS_OF(FIRST, NEXT) \
	FIRST(MODEL_8B, "8B", 8192, 128256, 4096, 14336, 32, 32, 128, 8, 3) \
	NEXT(MODEL_70B, "70B", 8192, 128256, 8192, 28672, 80, 64, 128, 8, 3) \
	NEXT(MODEL_405B, "405B", 8192, 128256, 16384, 53248, 126, 128, 128, 8, 3) \
	NEXT(MODEL_XXL, "XXL", 8192, 0, 16384, 53248, 126, 0, 0, 0, 2)
enum { CHOICE_IDS(OTHER_MODELS_OF) NOTHERS };
/* the models of maps: the course's that train on one device, then others */
#define MAP_MODELS CHOICES(TRAINED_SIZES_OF) "|" CHOICES(OTHER_MODELS_OF)
enum { NMAP_MODELS = NTRAINED + NOTHERS };
CostModel   cost_model(int which);

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
