#include "ops/array_as.h"

#include "ops/dispatch.h"

Array array_as(Device *d, Array x, size_t n, Type type)
{
	const Ops *ops = ops_for(d);
	if (ops->reads(d, x.type, type))
		return (Array){ x.at, type };
	Array copy = array_new(d, n, type, MEM_TEMPORARY, "cast");
	ops->cast(d, copy, x, n);
	return copy;
}

void array_as_end(Device *d, Array *copy, Array x)
{
	if (copy->at != x.at)
		device_free(d, copy->at);
	copy->at = NULL;
}
