/* ddp_case.h: a training step of one of several ranks, while it is timed */
#ifndef CASES_DDP_CASE_H
#define CASES_DDP_CASE_H

#include "cases/ddp_config.h"

/* the work of a queue between two stamps */
typedef struct Interval {
	Queue queue;
	/* class: "forward" or "backward"; "wait", of the compute queue for a
	 * collective; else the collective's name, or NULL: no collective */
	const char *class, *name;
	int number;
	bool backward;
	int from, to;
} Interval;

typedef struct DdpCase {
	DdpConfig config;
	Device *device;
	Comm *comm;
	Model *m;
	Optimizer adamw, *optimizer;     /* optimizer: &adamw, or a strategy's */
	Batch batch;
	Ddp *ddp;                        /* NULL: gradients are not summed */
	Hooks inner;                     /* hooks of ddp, or of a strategy */
	int spare_sms;                   /* multiprocessors left to collectives */
	bool unrecorded;                 /* steps run as they are, not as graphs */
	int watch;
	double sent[NCOLLECTIVES];       /* bytes of the last step, as comm_sent */
	/* the intervals that were watched in the last step, and all its calls
	 * of hooks */
	Interval *intervals;
	HookCall *calls;
	HookListener listener;
	int nintervals, ncalls;
	int open, wait;                  /* intervals: a unit's, and a wait's */
	const HookCall *watched;         /* a call that is under way */
	const char *watched_name;
	size_t update_at;                /* d->nlog when the optimizer began */
	double single_ms, single_bwd_ms;         /* found by ddp_case_single */
} DdpCase;

#endif
