/* strides.h: heads and rows of tensors, as the library takes arrays */
#ifndef LIBSYSTEMS_STRIDES_H
#define LIBSYSTEMS_STRIDES_H

#include "tensors.h"

namespace {

// find the strides of heads and rows
/* do n sizes have one stride as if they were one size? sets *stride */
bool merged(const Look &x, int64_t n, int64_t *stride)
{
	int64_t last = -1;
	*stride = 1;
	for (int64_t i = 0; i < n; i++) {
		if (x.sizes[i] == 1)
			continue;
		if (last >= 0 && x.strides[last] != x.sizes[i] * x.strides[i])
			return false;
		last = i;
		*stride = x.strides[i];
	}
	return true;
}

/* has each element a place of its own? */
bool separate(const Look &x)
{
	std::vector<std::pair<int64_t, int64_t>> steps;
	for (int64_t i = 0; i < x.dim; i++)
		if (x.sizes[i] > 1)
			steps.emplace_back(x.strides[i], x.sizes[i]);
	std::sort(steps.begin(), steps.end());
	int64_t reach = 1;
	for (auto [stride, size] : steps) {
		if (stride < reach)
			return false;
		reach = stride * size;
	}
	return true;
}

int64_t heads_of(const Look &x) { return x.dim > 3 ? x.sizes[x.dim - 3] : 1; }

int64_t batch_of(const Look &x)
{
	int64_t n = 1;
	for (int64_t i = 0; i < x.dim - (x.dim > 3 ? 3 : 2); i++)
		n *= x.sizes[i];
	return n;
}

/* sets *a; false: x is to be copied */
bool find_heads(const Look &x, FlashArray *a)
{
	const int64_t row = x.dim - 2, head = x.dim - 3, d = x.dim - 1;
	*a = { nullptr, 1, x.sizes[row] > 1 ? x.strides[row] : x.sizes[d], 1 };
	if (x.dim > 3 && x.sizes[head] > 1)
		a->head = x.strides[head];
	return separate(x) && merged(x, x.dim > 3 ? head : row, &a->batch)
		&& (x.sizes[d] == 1 || x.strides[d] == 1)
		&& (x.on_gpu() || a->row <= INT32_MAX);
}

/* x as the library reads it, or as a copy that it can read; sets *a */
Look readable(const Look &x, int32_t dtype, FlashArray *a)
{
	Look found = as(x, dtype, find_heads(x, a));
	find_heads(found, a);
	a->at = found.at();
	return found;
}

bool contiguous(const Look &x)
{
	int64_t stride;
	return x.numel == 0 || (merged(x, x.dim, &stride) && (x.numel == 1
		|| stride == 1));
}

/* sets *stride; false: rows are to be copied */
bool find_rows(const Look &x, int64_t *stride)
{
	const int64_t last = x.dim - 1, width = x.sizes[last];
	bool one = merged(x, last, stride);
	if (x.numel == width)
		*stride = width;                  /* there is one row */
	return one && *stride >= width && (width == 1 || x.strides[last] == 1);
}

}

#endif
