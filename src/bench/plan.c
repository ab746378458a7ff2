#include "bench/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"

void plan_copy(Plan *plan, const void *config, size_t size)
{
	plan->planned = grow(plan->planned, plan->n, sizeof *plan->planned);
	Planned *p = &plan->planned[plan->n++];
	p->config = memcpy(need(malloc(size)), config, size);
	p->cells = key_cells(plan->keys, config);
}

void plan_free(Plan *plan)
{
	for (int i = 0; i < plan->n; i++) {
		free(plan->planned[i].config);
		free(plan->planned[i].cells);
	}
	free(plan->planned);
}
