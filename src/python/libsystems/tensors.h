/* tensors.h: tensors of PyTorch's stable ABI, as the library takes arrays */
#ifndef LIBSYSTEMS_TENSORS_H
#define LIBSYSTEMS_TENSORS_H

#include <dlfcn.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

extern "C" {
#include "ops/flash_attention.h"
#include "ops/rmsnorm.h"
}

namespace {

using torch::stable::Tensor;

// pass arguments on PyTorch's stack
template <class T> T value(StableIValue word)
{
	T x;
	std::memcpy(&x, &word, sizeof x);
	return x;
}

Tensor tensor(StableIValue word)
{
	return Tensor(value<AtenTensorHandle>(word));
}

StableIValue word(const Tensor &x)
{
	AtenTensorHandle handle;
	TORCH_ERROR_CODE_CHECK(aoti_torch_new_tensor_handle(x.get(), &handle));
	StableIValue result = 0;
	std::memcpy(&result, &handle, sizeof handle);
	return result;
}

// load the libraries
[[noreturn]] void refuse(const std::string &text)
{
	throw std::runtime_error("libsystems: " + text);
}

void *open_beside(const char *name)
{
	Dl_info self;
	dladdr(reinterpret_cast<void *>(&open_beside), &self);
	std::string path = self.dli_fname;
	path.erase(path.rfind('/') + 1);
	void *handle = dlopen((path + name).c_str(), RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		refuse(dlerror());
	return handle;
}

struct Library {
	void *handle;
	explicit Library(const char *name) : handle(open_beside(name)) { }
	template <class F> void find(F *&function, const char *name) const
	{
		function = reinterpret_cast<F *>(dlsym(handle, name));
		if (!function)
			refuse(dlerror());
	}
};

struct Functions : Library {
	decltype(&flash_attention_forward) attention;
	decltype(&flash_attention_backward) attention_backward;
	decltype(&flash_attention_status) attention_status;
	decltype(&rmsnorm_forward) norm;
	decltype(&rmsnorm_backward) norm_backward;
	decltype(&rmsnorm_status) norm_status;
	explicit Functions(const char *name) : Library(name)
	{
		find(attention, "flash_attention_forward");
		find(attention_backward, "flash_attention_backward");
		find(attention_status, "flash_attention_status");
		find(norm, "rmsnorm_forward");
		find(norm_backward, "rmsnorm_backward");
		find(norm_status, "rmsnorm_status");
	}
};

const Functions &functions(bool in_double)
{
	if (in_double) {
		static const Functions doubles("libsystems64.so");
		return doubles;
	}
	static const Functions singles("libsystems.so");
	return singles;
}

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
	TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(dim, sizes, strides.data(),
		dtype, beside.place, beside.gpu, &handle));
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
		&& (x.sizes[d] == 1 || x.strides[d] == 1);
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

// find PyTorch's stream
void *stream_of(const Look &x)
{
	using Ask = AOTITorchError (int32_t, void **);
	static Ask *ask = [] {
		void *torch = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
		return torch ? reinterpret_cast<Ask *>(dlsym(torch,
			"aoti_torch_get_current_cuda_stream")) : nullptr;
	}();
	void *stream = nullptr;
	if (!x.on_gpu())
		return nullptr;
	if (!ask)
		refuse("this build of PyTorch has no CUDA");
	TORCH_ERROR_CODE_CHECK(ask(x.gpu, &stream));
	return stream;
}

}

#endif
