#include "cases/op_classes.h"

#include <string.h>

const char *const class_columns[NCLASSES] = { CHOICE_NAMES(OP_CLASSES_OF) };

enum { FIRST = 4 };                /* the step takes stamps of its own before */
static int class_of[NSTAMPS], nsegments = FIRST;

// stamp the device where the class changes
static const struct { const char *range; int class; } operations[] = {
	{ "linear", LINEAR }, { "rope", ATTENTION }, { "flash", ATTENTION },
	{ "scores", ATTENTION }, { "softmax", ATTENTION }, { "values", ATTENTION },
	{ "norm", ELEMENTWISE }, { "swiglu", ELEMENTWISE },
	{ "embedding", ELEMENTWISE }, { "loss", ELEMENTWISE },
	{ "optimizer", OPTIMIZER },
};

static void enter(void *device, const char *range)
{
	if (range && strcmp(range, "forward") == 0)
		nsegments = FIRST;
	for (size_t i = 0; range && i < sizeof operations / sizeof *operations; i++) {
		int class = operations[i].class;
		if (strcmp(range, operations[i].range) != 0
			|| (nsegments > FIRST && class_of[nsegments - 1] == class))
			continue;
		device_stamp(device, COMPUTE, nsegments);
		class_of[nsegments++] = class;
	}
}

void watch_classes(Device *d, bool on)
{
	d->watch = on ? enter : NULL;
	d->watcher = d;
}

// add up the segments of each class
void sum_classes(Device *d, double ms[NCLASSES])
{
	for (int c = 0; c < NCLASSES; c++)
		ms[c] = 0;
	for (int i = FIRST; i < nsegments; i++)
		ms[class_of[i]] += device_stamped_ms(d, i,
			i + 1 < nsegments ? i + 1 : 3);
}
