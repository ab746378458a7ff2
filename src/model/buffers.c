#include "model/buffers.h"

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
	if (m->ops->reads(m->device, x.type, type))
		return (Array){ x.at, type };
	Array copy = temporary(m, n, type, "cast");
	m->ops->cast(m->device, copy, x, n);
	return copy;
}

void release_cast(Model *m, Array *copy, Array x)
{
	if (copy->at != x.at)
		array_drop(m, copy);
}
