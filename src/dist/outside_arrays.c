#include "dist/outside_arrays.h"

#include <string.h>

#include "ops/elementary.h"
#include "ops/ops.h"

static Array of_caller(const void *x, int32_t type)
{
	return (Array){ (void *)x, type == OUTSIDE_FP32 ? FP32 : BF16 };
}

bool outside_alike(const Device *d, int32_t type)
{
	Type t = of_caller(NULL, type).type;
	return d->backend->width(t) == type_size(t);
}

/* is an array copied by the device? */
static bool by_device(const Device *d, size_t n, int32_t type)
{
	enum { FEW = 1 << 14 };
	return outside_alike(d, type)
		&& (n > FEW || strcmp(d->backend->name, "cpu") != 0);
}

static real value_of(const void *x, size_t i, int32_t type)
{
	if (type == OUTSIDE_FP32)
		return ((const float *)x)[i];
	uint16_t bits = ((const uint16_t *)x)[i];
	return type == OUTSIDE_BF16 ? bf16_to_float(bits) : fp16_to_float(bits);
}

void outside_read(Device *d, Array to, const void *x, size_t n, int32_t type)
{
	if (n == 0)
		return;
	if (by_device(d, n, type))
		ops_for(d)->cast(d, to, of_caller(x, type), n);
	else
		for (size_t i = 0; i < n; i++)
			((real *)to.at)[i] = value_of(x, i, type);
}

static void set_value(void *x, size_t i, float value, int32_t type)
{
	if (type == OUTSIDE_FP32)
		((float *)x)[i] = value;
	else
		((uint16_t *)x)[i] = type == OUTSIDE_BF16 ? bf16_from_float(value)
			: fp16_from_float(value);
}

void outside_write(Device *d, void *x, Array from, size_t n, int32_t type,
	int divisor)
{
	if (n == 0)
		return;
	if (by_device(d, n, type))
		elementary(d, &(Elementary){ .op = E_DIVIDE, .n = n,
			.y = of_caller(x, type), .out = index_every(1),
			.in = { element(from), number(divisor) } });
	else
		for (size_t i = 0; i < n; i++)
			set_value(x, i, (float)(((real *)from.at)[i] / divisor), type);
}

static int32_t bits_of(int32_t type)
{
	return type == OUTSIDE_FP32 ? OUTSIDE_FP32 : OUTSIDE_BF16;
}

void outside_read_bits(Device *d, Array to, const void *x, size_t n, int32_t type)
{
	if (n > 0 && by_device(d, n, type))
		device_copy(d, COMPUTE, to.at, x, n * type_size(to.type));
	else
		outside_read(d, to, x, n, bits_of(type));
}

void outside_write_bits(Device *d, void *x, Array from, size_t n, int32_t type)
{
	if (n > 0 && by_device(d, n, type))
		device_copy(d, COMPUTE, x, from.at, n * type_size(from.type));
	else
		outside_write(d, x, from, n, bits_of(type), 1);
}
