/* operators.cc: attention and RMSNorm as kernels of PyTorch's dispatcher, by its
 * stable ABI */
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

// give scratch to the library
struct Scratch {
	const Look &beside;
	std::vector<Tensor> held;

	void *take(int64_t nbytes)
	{
		held.push_back(dense(beside, 1, &nbytes, aoti_torch_dtype_uint8()));
		return Look(held.back()).at();
	}
	static void *get(void *owner, int64_t nbytes)
	{
		try {
			return static_cast<Scratch *>(owner)->take(nbytes);
		} catch (const std::exception &) {
			return nullptr;
		}
	}
	/* s: a FlashShape or a RmsnormShape, which does not outlive this */
	template <class S> void serve(S *s)
	{
		s->scratch = get;
		s->scratch_owner = this;
	}
};

// compute attention of tensors
void check_attention(const Look &q, const Look &k, const Look &v)
{
	if (k.dtype != q.dtype || v.dtype != q.dtype || !k.beside(q) || !v.beside(q))
		refuse("attention: types or devices differ");
	if (q.dim < 2 || k.dim != q.dim || v.dim != q.dim || !k.fits(v, k.dim)
		|| !q.fits(k, q.dim - 2) || q.sizes[q.dim - 1] != k.sizes[k.dim - 1])
		refuse("attention: shapes do not fit");
}

FlashShape shape_of(const Look &q, const Look &k, const Types &t, bool causal,
	double scale)
{
	if (!(scale >= 0) || std::isinf(scale))
		refuse("attention: the scale is negative or not finite");
	FlashShape s = { };
	s.batch = batch_of(q);
	s.heads = heads_of(q);
	s.seqlen_q = q.sizes[q.dim - 2];
	s.seqlen_k = k.sizes[k.dim - 2];
	s.head_size = q.sizes[q.dim - 1];
	s.scale = scale;
	s.causal = causal;
	s.type = t.attention;
	s.on_gpu = q.on_gpu();
	s.gpu = std::max(q.gpu, 0);
	s.stream = stream_of(q);
	return s;
}

using Two = std::pair<Tensor, Tensor>;

Two attention(const Look &q, const Look &k, const Look &v, bool causal,
	double scale)
{
	check_attention(q, k, v);
	const Types t = types_of(q);
	FlashShape shape = shape_of(q, k, t, causal, scale);
	Tensor o = like(q, t.working), l = dense(q, q.dim - 1, q.sizes, t.sums);
	if (q.numel == 0 || k.numel == 0)
		return { as(filled(o, 0), t.outside), filled(l, -INFINITY) };
	FlashArray at[4];
	const Look found[] = { readable(q, t.working, &at[1]),
		readable(k, t.working, &at[2]), readable(v, t.working, &at[3]),
		readable(Look(o), t.working, &at[0]) };
	const Functions &f = functions(t.in_double);
	Scratch scratch{ q, { } };
	scratch.serve(&shape);
	int32_t status = f.attention(&shape, at[0],
		static_cast<float *>(Look(l).at()), at[1], at[2], at[3]);
	if (status)
		refuse(std::string("attention: ") + f.attention_status(status));
	return { as(o, t.outside), l };
}

struct Three { Tensor q, k, v; };

Three attention_backward(const Look &d_o, const Look &q, const Look &k,
	const Look &v, const Look &o, const Look &l, bool causal, double scale,
	bool deterministic)
{
	check_attention(q, k, v);
	const Types t = types_of(q);
	if (d_o.dtype != q.dtype || o.dtype != q.dtype || l.dtype != t.sums
		|| !d_o.beside(q) || !o.beside(q) || !l.beside(q))
		refuse("attention: types or devices of gradients differ");
	if (d_o.dim != q.dim || o.dim != q.dim || l.dim != q.dim - 1
		|| !d_o.fits(q, q.dim) || !o.fits(q, q.dim) || !l.fits(q, l.dim))
		refuse("attention: shapes of gradients do not fit");
	FlashShape shape = shape_of(q, k, t, causal, scale);
	shape.deterministic = deterministic;
	Three d = { like(q, t.working), like(k, t.working), like(v, t.working) };
	if (q.numel == 0 || k.numel == 0)
		return { as(filled(d.q, 0), t.outside), as(filled(d.k, 0), t.outside),
			as(filled(d.v, 0), t.outside) };
	// call the backward pass for d
		const Look all[] = { Look(d.q), Look(d.k), Look(d.v), q, k, v, o, d_o };
		FlashArray at[8];
		std::vector<Look> found;             /* copies live until the call returns */
		for (int i = 0; i < 8; i++)
			found.push_back(readable(all[i], t.working, &at[i]));
		found.push_back(as(l, t.sums, separate(l) && contiguous(l)));
		const Functions &f = functions(t.in_double);
		Scratch scratch{ q, { } };
		scratch.serve(&shape);
		int32_t status = f.attention_backward(&shape, at[0], at[1], at[2], at[3],
			at[4], at[5], at[6], static_cast<const float *>(found[8].at()), at[7]);
		if (status)
			refuse(std::string("attention: ") + f.attention_status(status));
	return { as(d.q, t.outside), as(d.k, t.outside), as(d.v, t.outside) };
}

// compute the norm of tensors
int64_t check_norm(const Look &x, const Look &g, const Types &t)
{
	if (!g.beside(x) || (g.dtype != x.dtype && g.dtype != t.sums))
		refuse("rms_norm: types or devices differ");
	if (x.dim < 1 || g.dim != 1 || g.sizes[0] != x.sizes[x.dim - 1])
		refuse("rms_norm: shapes do not fit");
	int64_t rows = 1;
	for (int64_t i = 0; i < x.dim - 1; i++)
		rows *= x.sizes[i];
	return rows;
}

RmsnormShape rows_of(const Look &x, const Types &t, int64_t rows, double eps)
{
	if (!(eps >= 0) || std::isinf(eps))
		refuse("rms_norm: eps is negative or not finite");
	const int64_t width = x.sizes[x.dim - 1];
	RmsnormShape s = { };
	s.rows = rows;
	s.width = s.x_row = s.y_row = width;
	s.eps = eps;
	s.type = t.norm;
	s.on_gpu = x.on_gpu();
	s.gpu = std::max(x.gpu, 0);
	s.stream = stream_of(x);
	return s;
}

Two norm(const Look &x, const Look &g, double eps)
{
	const Types t = types_of(x);
	const int64_t rows = check_norm(x, g, t);
	RmsnormShape shape = rows_of(x, t, rows, eps);
	Tensor y = like(x, t.working), rho = dense(x, 1, &rows, t.sums);
	if (x.numel == 0)
		return { as(y, t.outside), filled(rho, 1 / std::sqrt(eps)) };
	const Look found = as(x, t.working, find_rows(x, &shape.x_row));
	find_rows(found, &shape.x_row);
	const Look gain = as(g, t.sums, contiguous(g));
	const Functions &f = functions(t.in_double);
	Scratch scratch{ x, { } };
	scratch.serve(&shape);
	int32_t status = f.norm(&shape, Look(y).at(),
		static_cast<float *>(Look(rho).at()), found.at(),
		static_cast<const float *>(gain.at()));
	if (status)
		refuse(std::string("rms_norm: ") + f.norm_status(status));
	return { as(y, t.outside), rho };
}

Two norm_backward(const Look &dy, const Look &x, const Look &g, const Look &rho,
	double eps)
{
	const Types t = types_of(x);
	const int64_t rows = check_norm(x, g, t);
	if (dy.dtype != x.dtype || !dy.beside(x) || dy.dim != x.dim
		|| !dy.fits(x, x.dim) || rho.dtype != t.sums || !rho.beside(x)
		|| rho.numel != rows)
		refuse("rms_norm: the gradient is not like x");
	RmsnormShape shape = rows_of(x, t, rows, eps);
	Tensor dx = like(x, t.working), dg = like(g, t.sums);
	if (x.numel == 0)
		return { as(dx, t.outside), as(filled(dg, 0), g.dtype) };
	const Look found = as(x, t.working, find_rows(x, &shape.x_row));
	find_rows(found, &shape.x_row);
	const Look d = as(dy, t.working, find_rows(dy, &shape.y_row));
	find_rows(d, &shape.y_row);
	const Look gain = as(g, t.sums, contiguous(g));
	const Look scale = as(rho, t.sums, contiguous(rho));
	// call the backward pass for dx and dg
		const Functions &f = functions(t.in_double);
		Scratch scratch{ x, { } };
		scratch.serve(&shape);
		int32_t status = f.norm_backward(&shape, Look(dx).at(),
			static_cast<float *>(Look(dg).at()), d.at(), found.at(),
			static_cast<const float *>(gain.at()),
			static_cast<const float *>(scale.at()));
		if (status)
			refuse(std::string("rms_norm: ") + f.norm_status(status));
	return { as(dx, t.outside), as(dg, g.dtype) };
}

// unpack the arguments of operators
void attention_op(StableIValue *s, uint64_t, uint64_t)
{
	Look q(tensor(s[0])), k(tensor(s[1])), v(tensor(s[2]));
	auto [o, l] = attention(q, k, v, value<bool>(s[3]), value<double>(s[4]));
	s[0] = word(o), s[1] = word(l);
}

void attention_backward_op(StableIValue *s, uint64_t, uint64_t)
{
	Look d_o(tensor(s[0])), q(tensor(s[1])), k(tensor(s[2])), v(tensor(s[3])),
		o(tensor(s[4])), l(tensor(s[5]));
	auto [dq, dk, dv] = attention_backward(d_o, q, k, v, o, l,
		value<bool>(s[6]), value<double>(s[7]), value<bool>(s[8]));
	s[0] = word(dq), s[1] = word(dk), s[2] = word(dv);
}

void norm_op(StableIValue *s, uint64_t, uint64_t)
{
	Look x(tensor(s[0])), g(tensor(s[1]));
	auto [y, rho] = norm(x, g, value<double>(s[2]));
	s[0] = word(y), s[1] = word(rho);
}

void norm_backward_op(StableIValue *s, uint64_t, uint64_t)
{
	Look dy(tensor(s[0])), x(tensor(s[1])), g(tensor(s[2])), rho(tensor(s[3]));
	auto [dx, dg] = norm_backward(dy, x, g, rho, value<double>(s[4]));
	s[0] = word(dx), s[1] = word(dg);
}

}

// register the kernels
#define KERNELS(m) \
	m.impl("attention", &attention_op); \
	m.impl("attention_backward", &attention_backward_op); \
	m.impl("rms_norm", &norm_op); \
	m.impl("rms_norm_backward", &norm_backward_op)

STABLE_TORCH_LIBRARY_IMPL(libsystems, CPU, m)
{
	KERNELS(m);
}

STABLE_TORCH_LIBRARY_IMPL(libsystems, CUDA, m)
{
	KERNELS(m);
}
