#include "model/buffers.h"

#include "ops/array_as.h"

Array temporary(Model *m, size_t n, Type type, const char *what)
{
	return array_new(m->device, n, type, MEM_TEMPORARY, what);
}

Array activation(Model *m, size_t n, OpKind kind, const char *what)
{
	return array_new(m->device, n, m->policy->op[kind].output, MEM_ACTIVATION,
		what);
}

Array statistic(Model *m, size_t n, const char *what)
{
	return array_new(m->device, n, TYPE_REAL, MEM_ACTIVATION, what);
}

void array_drop(Model *m, Array *a)
{
	device_free(m->device, a->at);
	a->at = NULL;
}

Array cast_if_needed(Model *m, Array x, size_t n, Type type)
{
	return array_as(m->device, x, n, type);
}

void release_cast(Model *m, Array *copy, Array x)
{
	array_as_end(m->device, copy, x);
}
