#include "ops/array.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

Array array_new(Device *d, size_t n, Type type, Category category,
	const char *what)
{
	size_t nbytes = n * d->backend->width(type);
	return (Array){ device_alloc(d, nbytes, category, what), type };
}

Array array_part(const Device *d, Array a, size_t offset)
{
	size_t skip = offset * d->backend->width(a.type);
	return (Array){ (char *)a.at + skip, a.type };
}

// read an array, widening its elements
void array_read(Device *d, real *host, Array a, size_t n)
{
	if (d->backend->width(a.type) == sizeof(real)) {
		device_download(d, host, a.at, n * sizeof *host);
		return;
	}
	size_t width = type_size(a.type);
	uint16_t *bits = need(malloc(n * width));
	const uint8_t *codes = (const uint8_t *)bits;
	device_download(d, bits, a.at, n * width);
	for (size_t i = 0; i < n; i++)
		host[i] = width == 1 ? fp8_to_float(a.type, codes[i])
			: a.type == BF16 ? bf16_to_float(bits[i]) : fp16_to_float(bits[i]);
	free(bits);
}

// write an array, rounding its elements
void array_write(Device *d, Array a, const real *host, size_t n)
{
	if (d->backend->width(a.type) == sizeof(real)) {
		real *copy = need(malloc(n * sizeof *copy));
		memcpy(copy, host, n * sizeof *copy);
		round_array(a.type, copy, n);
		device_upload(d, a.at, copy, n * sizeof *copy);
		free(copy);
		return;
	}
	size_t width = type_size(a.type);
	uint16_t *bits = need(malloc(n * width));
	for (size_t i = 0; i < n; i++)
		if (width == 1)
			((uint8_t *)bits)[i] = fp8_from_float(a.type, (float)host[i]);
		else
			bits[i] = a.type == BF16 ? bf16_from_float((float)host[i])
				: fp16_from_float((float)host[i]);
	device_upload(d, a.at, bits, n * width);
	free(bits);
}

void array_tabulate(Device *d, Array a, size_t n,
	void (*tabulate)(const void *arg, real *host, size_t n), const void *arg)
{
	if (d->backend->dry)
		return;
	real *host = need(malloc(n * sizeof *host));
	tabulate(arg, host, n);
	array_write(d, a, host, n);
	free(host);
}
