/* ddp_plan.h: which configurations a program on data parallelism tries */
#ifndef CASES_DDP_PLAN_H
#define CASES_DDP_PLAN_H

#include "cases/ddp_config.h"

/* sets defaults that depend on the device; refuses what cannot be */
void ddp_given_settle(DdpGiven *given);
/* sets in c what was given. False if c is of another size, precision or wire than
 * was given, and is not to be planned */
bool ddp_settle(DdpConfig *c, const DdpGiven *given);
void ddp_plan(Plan *plan, const DdpGiven *given, DdpConfig c);
/* plans the first `kinds` kinds for every size, in bf16, and in fp32 too for xl
 * or the size that was asked for; on a CPU two sizes in fp32 */
void ddp_plan_kinds(Plan *plan, const DdpGiven *given, int kinds);

#endif
