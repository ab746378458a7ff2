/* tensors.h: tensors of PyTorch's stable ABI */
#ifndef LIBSYSTEMS_TENSORS_H
#define LIBSYSTEMS_TENSORS_H

#include <algorithm>
#include <torch/csrc/stable/ops.h>
#include <utility>
#include <vector>

#include "libraries.h"

namespace {

// look at a tensor
struct Look {
	Tensor x;
	int64_t dim, numel, *sizes, *strides;
	int32_t dtype, place, gpu;

	explicit Look(Tensor tensor) : x(std::move(tensor))
	{
		AtenTensorHandle h = x.get();
		TORCH_ERROR_CODE_CHECK(aoti_torch_get_dim(h, &dim));
		TORCH_ERROR_CODE_CHECK(aoti_torch_get_numel(h, &numel));
		TORCH_ERROR_CODE_CHECK(aoti_torch_get_sizes(h, &sizes));
		TORCH_ERROR_CODE_CHECK(aoti_torch_get_strides(h, &strides));
		TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(h, &dtype));
		TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(h, &place));
		TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_index(h, &gpu));
	}

	void *at() const
	{
		void *address;
		TORCH_ERROR_CODE_CHECK(aoti_torch_get_data_ptr(x.get(), &address));
		return address;
	}
	bool on_gpu() const { return place != aoti_torch_device_type_cpu(); }
	bool beside(const Look &o) const { return place == o.place && gpu == o.gpu; }
	bool fits(const Look &o, int64_t n) const /* are the first n sizes equal? */
	{
		return dim >= n && o.dim >= n && std::equal(sizes, sizes + n, o.sizes);
	}
};

// make and convert tensors
struct Types {
	int32_t outside, working, sums, attention, norm;
	bool in_double;
};

Types types_of(const Look &x)
{
	const int32_t f32 = aoti_torch_dtype_float32();
	const int32_t f64 = aoti_torch_dtype_float64();
	if (x.dtype == f64 && !x.on_gpu())
		return { f64, f64, f64, FLASH_FP32, RMSNORM_FP32, true };
	if (x.dtype == f32)
		return { f32, f32, f32, FLASH_FP32, RMSNORM_FP32, false };
	const bool bf16 = x.dtype == aoti_torch_dtype_bfloat16();
	if (!bf16 && x.dtype != aoti_torch_dtype_float16())
		refuse("tensors of this type are not supported on this device");
	if (!x.on_gpu())
		return { x.dtype, f32, f32, FLASH_FP32, RMSNORM_FP32, false };
	return { x.dtype, x.dtype, f32, bf16 ? FLASH_BF16 : FLASH_FP16,
		bf16 ? RMSNORM_BF16 : RMSNORM_FP16, false };
}

/* dense, with arbitrary content, where `beside` is */
Tensor dense(const Look &beside, int64_t dim, const int64_t *sizes, int32_t dtype)
{
	std::vector<int64_t> strides(dim);
	int64_t step = 1;
	for (int64_t i = dim - 1; i >= 0; i--) {
		strides[i] = step;
		step *= std::max<int64_t>(sizes[i], 1);
	}
	AtenTensorHandle handle;
	if (aoti_torch_empty_strided(dim, sizes, strides.data(), dtype, beside.place,
		beside.gpu, &handle) != AOTI_TORCH_SUCCESS)
		refuse("no memory for a result of " + std::to_string(step) + " elements");
	return Tensor(handle);
}

Tensor like(const Look &x, int32_t dtype)
{
	return dense(x, x.dim, x.sizes, dtype);
}

/* x itself, if it has this type and its strides will do; else a dense copy */
Look as(const Look &x, int32_t dtype, bool strides_do)
{
	if (x.dtype == dtype && strides_do)
		return x;
	Tensor copy = like(x, dtype);
	TORCH_ERROR_CODE_CHECK(aoti_torch_copy_(copy.get(), x.x.get(), 0));
	return Look(copy);
}

Tensor as(const Tensor &x, int32_t dtype)
{
	return as(Look(x), dtype, true).x;
}

Tensor filled(const Tensor &x, double number)
{
	torch::stable::fill_(x, number);
	return x;
}

}

#endif
