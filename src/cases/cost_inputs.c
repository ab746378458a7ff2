#define _GNU_SOURCE
#include "cases/cost_inputs.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

// read and fit the folders of --tables
enum { MOST_FOLDERS = 8 };
CostOptions cost_options = { "tables/h200x2+tables/h200x4,tables/cpu", -1 };
static Measurements seen[MOST_FOLDERS];
static CostFit fitted[MOST_FOLDERS];
static int nfolders;

int count_folders(void)
{
	char *list = need(strdup(cost_options.folders)), *rest = list, *folder;
	const char *size = cost_options.size >= 0
		? model_sizes[cost_options.size].name : NULL;
	int commas = 0;
	if (nfolders > 0) {
		free(list);
		return nfolders;
	}
	for (const char *c = list; (c = strchr(c, ',')); c++)
		if (++commas == MOST_FOLDERS)
			usage_error("--tables: more than %d folders", MOST_FOLDERS);
	while ((folder = strsep(&rest, ","))) {
		seen[nfolders] = measurements_read(folder);
		fitted[nfolders] = cost_fit(&seen[nfolders], size);
		nfolders++;
	}
	free(list);
	return nfolders;
}

const Measurements *cost_measurements(int folder)
{
	count_folders();
	return &seen[folder];
}

const CostFit *cost_fitted(int folder)
{
	count_folders();
	return &fitted[folder];
}

// say which step a row is of
void cost_set_step(Row *row, const MeasuredStep *s)
{
	row_set(row, "size", "%s", s->size);
	row_set(row, "context", "%ld", s->context);
	row_set(row, "precision", "%s", s->precision);
	row_set(row, "batch", "%ld", s->batch);
	row_set(row, "strategy", "%s", cost_names[s->run.strategy]);
	row_set(row, "prefetch", "%ld", s->run.prefetch);
	row_set(row, "ranks", "%ld", s->ranks);
	row_set(row, "tensor", "%ld", s->run.tensor);
}
