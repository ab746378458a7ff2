/* op_classes.h: the time of a step on the fused path, by class of operation */
#ifndef CASES_OP_CLASSES_H
#define CASES_OP_CLASSES_H

#include "device/device.h"

#define OP_CLASSES_OF(FIRST, NEXT) \
	FIRST(LINEAR, "linear_ms") NEXT(ATTENTION, "attention_ms") \
	NEXT(ELEMENTWISE, "elementwise_ms") NEXT(OPTIMIZER, "optimizer_ms")
enum { CHOICE_IDS(OP_CLASSES_OF) NCLASSES };
extern const char *const class_columns[NCLASSES];    /* of a table of steps */

/* starts or stops stamps at the ranges of d; one device at a time */
void watch_classes(Device *d, bool on);
/* sets the milliseconds of each class in the last step, which is over; a replayed
 * step has the stamps that were recorded with it */
void sum_classes(Device *d, double ms[NCLASSES]);

#endif
