/* ddp_steps.h: training steps of one of several ranks, timed part by part */
#ifndef CASES_DDP_STEPS_H
#define CASES_DDP_STEPS_H

#include "cases/ddp_case.h"
#include "cases/ddp_plan.h"

Comm    *ddp_comm(Row *row, Device *d, const DdpConfig *config);
/* opens device and communicator; all ranks of the row call this alike */
DdpCase *ddp_case(Row *row, const DdpConfig *config);
/* takes over a device and a communicator that the caller has opened */
DdpCase *ddp_case_over(Device *device, Comm *comm, const DdpConfig *config);
void     ddp_case_close(DdpCase **c);
/* makes a model, a batch and an optimizer; sum: ranks sum their gradients */
void     ddp_case_begin(DdpCase *c, bool sum, int kind, double bucket_mb);
void     ddp_case_end(DdpCase *c);
/* the two halves of ddp_case_begin: makes model and batch; bare: a model without
 * weights, which rank 0's seed draws later */
void     ddp_case_model(DdpCase *c, bool bare);
/* when the model has its hooks: sets what updates the weights; NULL: a new
 * adamw */
void     ddp_case_train(DdpCase *c, Optimizer *optimizer);

// declare the times of a step
enum { WATCH_COMM = 1, WATCH_UNITS = 2 };
/* medians over steps, of the slowest rank. bwd: until the last gradient is
 * there; wait: from then on until the optimizer may start; with WATCH_COMM comm:
 * collectives one after the other, and blocked: all waits of the compute queue
 * for them; period: from one step to the next by the host's clock; loss: of the
 * last step, on this rank */
typedef struct DdpTimes {
	double fwd_ms, bwd_ms, wait_ms, opt_ms, comm_ms, blocked_ms, period_ms, loss;
	Stats step;                      /* median and sd alone */
} DdpTimes;

// declare what a case measures
DdpTimes ddp_case_steps(DdpCase *c, int watch, long warmup, long steps);
/* gives the model the case's hooks, for steps that are not timed */
void     ddp_case_hook(DdpCase *c);
/* sets the parts of a step, the step, and the loss */
void     ddp_case_set_times(Row *row, const DdpTimes *t);
/* ms of the collectives of a step, with nothing to compute meanwhile */
double   ddp_case_alone(DdpCase *c, int runs);
/* ends the program unless all ranks have equal weights */
void     ddp_case_check(DdpCase *c);
double   ddp_case_ms(const DdpCase *c, int stamp);   /* since the step began */
/* the halves of ddp_case_row; each leaves the model for ddp_case_end */
void     ddp_case_single(Row *row, DdpCase *c);
void     ddp_case_summed(Row *row, DdpCase *c);

#endif
