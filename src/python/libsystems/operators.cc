/* operators.cc: attention and RMSNorm as kernels of PyTorch's dispatcher, by its
 * stable ABI */
#include "strides.h"

namespace {

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
		|| !q.fits(k, q.dim - (q.dim > 3 ? 3 : 2))
		|| q.sizes[q.dim - 1] != k.sizes[k.dim - 1])
		refuse("attention: shapes do not fit");
	if (heads_of(k) ? heads_of(q) % heads_of(k) : heads_of(q))
		refuse("attention: heads of keys do not divide those of queries");
}

FlashShape shape_of(const Look &q, const Look &k, const Types &t, int64_t mask,
	double scale)
{
	if (!(scale >= 0) || std::isinf(scale))
		refuse("attention: the scale is negative or not finite");
	FlashShape s = { };
	s.batch = batch_of(q);
	s.heads = heads_of(q);
	s.kv_heads = heads_of(k);
	s.seqlen_q = q.sizes[q.dim - 2];
	s.seqlen_k = k.sizes[k.dim - 2];
	s.head_size = q.sizes[q.dim - 1];
	s.scale = scale;
	s.causal = static_cast<int32_t>(mask);
	s.type = t.attention;
	s.on_gpu = q.on_gpu();
	s.gpu = std::max(q.gpu, 0);
	s.stream = stream_of(q);
	return s;
}

using Two = std::pair<Tensor, Tensor>;

/* computes o and l, which are there */
void attend(FlashShape shape, const Types &t, const Look &o, const Look &l,
	const Look &q, const Look &k, const Look &v)
{
	FlashArray at[4];
	const Look found[] = { readable(q, t.working, &at[1]),
		readable(k, t.working, &at[2]), readable(v, t.working, &at[3]),
		readable(o, t.working, &at[0]) };
	const Functions &f = functions(t.in_double);
	Scratch scratch{ q, { } };
	scratch.serve(&shape);
	int32_t status = f.attention(&shape, at[0], static_cast<float *>(l.at()),
		at[1], at[2], at[3]);
	if (status)
		refuse(std::string("attention: ") + f.attention_status(status));
}

Two attention(const Look &q, const Look &k, const Look &v, int64_t mask,
	double scale)
{
	check_attention(q, k, v);
	const Types t = types_of(q);
	FlashShape shape = shape_of(q, k, t, mask, scale);
	Tensor o = like(q, t.working), l = dense(q, q.dim - 1, q.sizes, t.sums);
	if (q.numel == 0 || k.numel == 0)
		return { as(filled(o, 0), t.outside), filled(l, -INFINITY) };
	attend(shape, t, Look(o), Look(l), q, k, v);
	return { as(o, t.outside), l };
}

struct Three { Tensor q, k, v; };

void check_gradients(const Look &q, const Types &t, const Look &d_o,
	const Look &o, const Look &l, bool l_fits)
{
	if (d_o.dtype != q.dtype || o.dtype != q.dtype || l.dtype != t.sums
		|| !d_o.beside(q) || !o.beside(q) || !l.beside(q))
		refuse("attention: types or devices of gradients differ");
	if (d_o.dim != q.dim || o.dim != q.dim || l.dim != q.dim - 1
		|| !d_o.fits(q, q.dim) || !o.fits(q, q.dim) || !l_fits)
		refuse("attention: shapes of gradients do not fit");
}

/* of d, which are there, q, k, v, o, and d_o, in this order */
void propagate(FlashShape shape, const Types &t, const Look (&all)[8],
	const Look &l)
{
	FlashArray at[8];
	std::vector<Look> found;             /* copies live until the call returns */
	for (int i = 0; i < 8; i++)
		found.push_back(readable(all[i], t.working, &at[i]));
	found.push_back(as(l, t.sums, separate(l) && contiguous(l)));
	const Functions &f = functions(t.in_double);
	Scratch scratch{ all[3], { } };
	scratch.serve(&shape);
	int32_t status = f.attention_backward(&shape, at[0], at[1], at[2], at[3],
		at[4], at[5], at[6], static_cast<const float *>(found[8].at()), at[7]);
	if (status)
		refuse(std::string("attention: ") + f.attention_status(status));
}

Three finished(const Three &d, const Types &t, bool empty)
{
	for (const Tensor *x : { &d.q, &d.k, &d.v })
		if (empty)
			filled(*x, 0);
	return { as(d.q, t.outside), as(d.k, t.outside), as(d.v, t.outside) };
}

Three attention_backward(const Look &d_o, const Look &q, const Look &k,
	const Look &v, const Look &o, const Look &l, int64_t mask, double scale,
	bool deterministic)
{
	check_attention(q, k, v);
	const Types t = types_of(q);
	check_gradients(q, t, d_o, o, l, l.fits(q, q.dim - 1));
	FlashShape shape = shape_of(q, k, t, mask, scale);
	shape.deterministic = deterministic;
	Three d = { like(q, t.working), like(k, t.working), like(v, t.working) };
	const bool empty = q.numel == 0 || k.numel == 0;
	if (!empty)
		propagate(shape, t, { Look(d.q), Look(d.k), Look(d.v), q, k, v, o, d_o },
			l);
	return finished(d, t, empty);
}

// compute attention of packed sequences
/* (rows, heads, D) as (1, heads, rows, D); 0 is added to x's own offset */
Look heads_first(const Look &x)
{
	const int64_t sizes[] = { 1, x.sizes[1], x.sizes[0], x.sizes[2] },
		strides[] = { x.numel, x.strides[1], x.strides[0], x.strides[2] };
	AtenTensorHandle view;
	TORCH_ERROR_CODE_CHECK(aoti_torch__reinterpret_tensor(x.x.get(), 4, sizes,
		strides, 0, &view));
	return Look(Tensor(view));
}

struct Sequences {
	const Look &starts_q, &starts_k;
	int64_t max_q, max_k;
};

void check_starts(const Look &starts, const Look &q)
{
	if (starts.dtype != aoti_torch_dtype_int32() || !starts.beside(q)
		|| starts.dim != 1 || starts.numel < 2 || !contiguous(starts))
		refuse("attention: starts of sequences are not int32 numbers, dense and "
			"beside q");
}

void check_packed(const Look &q, const Look &k, const Look &v,
	const Sequences &p)
{
	if (q.dim != 3 || k.dim != 3 || v.dim != 3)
		refuse("attention: packed sequences have three dimensions");
	check_starts(p.starts_q, q);
	check_starts(p.starts_k, q);
	if (p.starts_q.numel != p.starts_k.numel || p.max_q < 1 || p.max_k < 1)
		refuse("attention: numbers or lengths of sequences do not fit");
	check_attention(heads_first(q), heads_first(k), heads_first(v));
}

FlashShape packed_shape(const Look &q, const Look &k, const Types &t,
	int64_t mask, double scale, const Sequences &p)
{
	FlashShape s = shape_of(heads_first(q), heads_first(k), t, mask, scale);
	s.total_q = s.seqlen_q;
	s.total_k = s.seqlen_k;
	s.batch = p.starts_q.numel - 1;
	s.seqlen_q = p.max_q;
	s.seqlen_k = p.max_k;
	s.cu_seqlens_q = static_cast<const int32_t *>(p.starts_q.at());
	s.cu_seqlens_k = static_cast<const int32_t *>(p.starts_k.at());
	return s;
}

Two packed_attention(const Look &q, const Look &k, const Look &v,
	const Sequences &p, int64_t mask, double scale)
{
	check_packed(q, k, v, p);
	const Types t = types_of(q);
	const int64_t sizes[] = { q.sizes[1], q.sizes[0] };
	Tensor o = like(q, t.working), l = dense(q, 2, sizes, t.sums);
	if (q.numel == 0 || k.numel == 0)
		return { as(filled(o, 0), t.outside), filled(l, -INFINITY) };
	attend(packed_shape(q, k, t, mask, scale, p), t, heads_first(Look(o)),
		Look(l), heads_first(q), heads_first(k), heads_first(v));
	return { as(o, t.outside), l };
}

Three packed_attention_backward(const Look &d_o, const Look &q, const Look &k,
	const Look &v, const Look &o, const Look &l, const Sequences &p,
	int64_t mask, double scale, bool deterministic)
{
	check_packed(q, k, v, p);
	const Types t = types_of(q);
	check_gradients(q, t, d_o, o, l, l.dim == 2 && l.sizes[0] == q.sizes[1]
		&& l.sizes[1] == q.sizes[0]);
	Three d = { like(q, t.working), like(k, t.working), like(v, t.working) };
	const bool empty = q.numel == 0 || k.numel == 0;
	if (!empty) {
		FlashShape shape = packed_shape(q, k, t, mask, scale, p);
		shape.deterministic = deterministic;
		propagate(shape, t, { heads_first(Look(d.q)), heads_first(Look(d.k)),
			heads_first(Look(d.v)), heads_first(q), heads_first(k),
			heads_first(v), heads_first(o), heads_first(d_o) }, l);
	}
	return finished(d, t, empty);
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
	auto [o, l] = attention(q, k, v, value<int64_t>(s[3]),
		value<double>(s[4]));
	s[0] = word(o), s[1] = word(l);
}

void attention_backward_op(StableIValue *s, uint64_t, uint64_t)
{
	Look d_o(tensor(s[0])), q(tensor(s[1])), k(tensor(s[2])), v(tensor(s[3])),
		o(tensor(s[4])), l(tensor(s[5]));
	auto [dq, dk, dv] = attention_backward(d_o, q, k, v, o, l,
		value<int64_t>(s[6]), value<double>(s[7]), value<bool>(s[8]));
	s[0] = word(dq), s[1] = word(dk), s[2] = word(dv);
}

void packed_attention_op(StableIValue *s, uint64_t, uint64_t)
{
	Look q(tensor(s[0])), k(tensor(s[1])), v(tensor(s[2])),
		starts_q(tensor(s[3])), starts_k(tensor(s[4]));
	auto [o, l] = packed_attention(q, k, v, { starts_q, starts_k,
		value<int64_t>(s[5]), value<int64_t>(s[6]) }, value<int64_t>(s[7]),
		value<double>(s[8]));
	s[0] = word(o), s[1] = word(l);
}

void packed_attention_backward_op(StableIValue *s, uint64_t, uint64_t)
{
	Look d_o(tensor(s[0])), q(tensor(s[1])), k(tensor(s[2])), v(tensor(s[3])),
		o(tensor(s[4])), l(tensor(s[5])), starts_q(tensor(s[6])),
		starts_k(tensor(s[7]));
	auto [dq, dk, dv] = packed_attention_backward(d_o, q, k, v, o, l, { starts_q,
		starts_k, value<int64_t>(s[8]), value<int64_t>(s[9]) },
		value<int64_t>(s[10]), value<double>(s[11]), value<bool>(s[12]));
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
	m.impl("packed_attention", &packed_attention_op); \
	m.impl("packed_attention_backward", &packed_attention_backward_op); \
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
