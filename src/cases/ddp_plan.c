#include "cases/ddp_plan.h"

#include "base/error.h"

// settle the options of programs on data parallelism
/* best for symmetric windows, in our own measurements */
enum { CTAS = 8 };

void ddp_given_settle(DdpGiven *g)
{
	bool gpu = harness_on_gpu();
	if (g->warmup == 0)
		g->warmup = gpu ? 5 : 1;
	if (g->steps == 0)
		g->steps = gpu ? 10 : 3;
	bool by_optimizer = g->sums == SUMS_BY_OPTIMIZER;
	if (by_optimizer && g->fusion != FUSION_FUSED)
		usage_error("--sums optimizer needs --fusion fused");
	if (by_optimizer && g->ranks > MOST_GRADIENTS)
		usage_error("--sums optimizer is for %d ranks at most", MOST_GRADIENTS);
}

// set what was given in a configuration
bool ddp_settle(DdpConfig *c, const DdpGiven *g)
{
	if ((g->size >= 0 && c->model.size != g->size)
		|| (g->precision >= 0 && c->model.precision != g->precision)
		|| (g->wire >= 0 && c->wire != g->wire))
		return false;
	c->model.context = g->context ? g->context : scaled_context(512);
	c->model.fusion = g->fusion;
	c->batch = g->batch;
	c->ranks = g->ranks;
	c->warmup = g->warmup;
	c->steps = g->steps;
	if (c->transport == TRANSPORT_AUTO)
		c->transport = g->transport;
	if (g->sums >= 0)
		c->sums = g->sums;
	c->ctas = g->ctas >= 0 ? g->ctas
		: harness_on_gpu() && c->sums == SUMS_BY_COMM ? CTAS : 0;
	return true;
}

void ddp_plan(Plan *plan, const DdpGiven *g, DdpConfig c)
{
	if (ddp_settle(&c, g))
		plan_add(plan, &c);
}

// plan kinds at each size
static void plan_precisions(Plan *plan, const DdpGiven *g, DdpConfig c)
{
	bool gpu = harness_on_gpu(), any = g->precision < 0,
		both = c.model.size == g->size || c.model.size == SIZE_XL;
	c.wire = ddp_wire(g);
	c.model.precision = any && gpu ? POLICY_BF16 : any ? POLICY_FP32
		: g->precision;
	ddp_plan(plan, g, c);
	c.model.precision = POLICY_FP32;
	if (any && gpu && both)
		ddp_plan(plan, g, c);
}

void ddp_plan_kinds(Plan *plan, const DdpGiven *g, int kinds)
{
	for (int s = 0; s < NSIZES; s++) {
		bool one = g->size == s, few = s == SIZE_SMALL || s == SIZE_LARGE;
		if (!one && (g->size >= 0 || s >= NTRAINED
			|| (!harness_on_gpu() && !few)))
			continue;
		for (int kind = 0; kind < kinds; kind++)
			plan_precisions(plan, g, (DdpConfig){ { .size = s },
				.kind = kind });
	}
}
