/* cost_search.h: rows of maps: the best way to divide a step, by machine,
 * model, number of devices and batch */
#ifndef CASES_COST_SEARCH_H
#define CASES_COST_SEARCH_H

#include "bench/harness.h"
#include "estimate/cost_map.h"

typedef struct SearchOptions {
	int sheet, model;                /* -1: all */
	CostSheet custom;                /* name NULL; rates of 0: not given */
	/* 0: not given */
	long d_model, d_ff, layers, heads, kv_heads, vocab, context;
	long devices, tokens;
	double fp8;                      /* as of a CostModel */
} SearchOptions;
extern SearchOptions search_options;

/* set the machines and the models that the options leave, and return how many;
 * one that is given in part, or makes no sense, is a usage error */
int  search_sheets(CostSheet sheets[MAP_SHEETS]);
int  search_models(CostModel models[NMAP_MODELS]);

typedef struct SearchConfig {
	const char *hardware, *model;
	int sheet, at;                   /* indices of search_sheets, search_models */
} SearchConfig;

void run_regimes(Row *row, const void *config);
void run_scaling(Row *row, const void *config);
void run_hiding(Row *row, const void *config);

#endif
