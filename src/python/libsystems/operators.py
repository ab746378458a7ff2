"""operators: attention and RMSNorm in PyTorch's dispatcher"""
import glob
import math
import os
import re

import torch

# refuse tensors that operators do not take
TYPES = torch.float32, torch.bfloat16, torch.float16, torch.float64
LONGEST = 65535 * 64


def takes(name, x):
	if x.dtype not in TYPES or x.is_cuda and x.dtype == torch.float64:
		raise TypeError(f"{name}: {x.dtype} is not supported on {x.device.type}")
	if x.device.type not in ("cpu", "cuda", "meta"):
		raise ValueError(f"{name}: {x.device} is not supported")


def heads_fit(q, k):
	"""are q's heads a multiple of k's? Of three dimensions none counts heads"""
	own, shared = ((*x.shape[:-2], 1, 1)[-3 if x.dim() > 3 else 0]
		for x in (q, k))
	return own == shared or q.dim() > 3 and shared > 0 and own % shared == 0


def check_attention(q, k, v, scale):
	takes("flash_attention", q)
	if any(x.dtype != q.dtype or x.device != q.device for x in (k, v)):
		raise ValueError("flash_attention: types or devices differ: " + ", ".join(
			f"{x.dtype} on {x.device}" for x in (q, k, v)))
	if (min(q.dim(), k.dim()) < 2 or k.shape != v.shape
			or q.dim() != k.dim() or k.shape[-1] != q.shape[-1]
			or k.shape[:-3] != q.shape[:-3] or not heads_fit(q, k)):
		raise ValueError("flash_attention: shapes do not fit: " + ", ".join(
			str(tuple(x.shape)) for x in (q, k, v)))
	if not 0 <= scale < math.inf:
		raise ValueError(f"flash_attention: scale is {scale}")


def check_packed(q, k, v, starts_q, starts_k, max_q, max_k, scale):
	name = "flash_attention_varlen"
	if any(x.dim() != 3 for x in (q, k, v)):
		raise ValueError(f"{name}: q, k and v have not three dimensions")
	check_attention(*(x.transpose(0, 1)[None] for x in (q, k, v)), scale)
	for starts in starts_q, starts_k:
		if starts.dtype != torch.int32 or starts.device != q.device:
			raise ValueError(f"{name}: cu_seqlens is {starts.dtype} on "
				f"{starts.device}, not int32 on {q.device}")
		if starts.dim() != 1 or starts.numel() < 2 or starts.stride(0) != 1:
			raise ValueError(f"{name}: cu_seqlens has not one dimension, dense")
	if starts_q.shape != starts_k.shape or min(max_q, max_k) < 1:
		raise ValueError(f"{name}: numbers or lengths of sequences do not fit")


def check_lengths(q, k, v, scale):
	"""check_attention, and how long sequences are"""
	check_attention(q, k, v, scale)
	if max(q.shape[-2], k.shape[-2]) > LONGEST:
		raise ValueError(f"flash_attention: more than {LONGEST} queries or keys")


def check_sequences(q, k, v, starts_q, starts_k, max_q, max_k, scale):
	"""check_packed, and on a CPU where sequences begin"""
	check_packed(q, k, v, starts_q, starts_k, max_q, max_k, scale)
	for x, starts, longest in (q, starts_q, max_q), (k, starts_k, max_k):
		ends = starts.tolist() if x.device.type == "cpu" else []
		if ends and ((ends[0], ends[-1]) != (0, len(x)) or not all(
				0 <= b - a <= longest for a, b in zip(ends, ends[1:]))):
			raise ValueError("flash_attention_varlen: cu_seqlens does not lead "
				f"from 0 to {len(x)} in steps of 0 to {longest}: {ends}")


def check_norm(x, g, eps):
	takes("rms_norm", x)
	if x.device != g.device or g.dtype not in (x.dtype, sums_type(x)):
		raise ValueError(f"rms_norm: types or devices differ: {x.dtype} on "
			f"{x.device}, {g.dtype} on {g.device}")
	if x.dim() < 1 or g.shape != x.shape[-1:]:
		raise ValueError(f"rms_norm: shapes do not fit: {tuple(x.shape)}, "
			f"{tuple(g.shape)}")
	if not 0 <= eps < math.inf:
		raise ValueError(f"rms_norm: eps is {eps}")

# declare the operators
_library = torch.library.Library("libsystems", "FRAGMENT")


def define(schema):
	_library.define(schema, tags=torch.Tag.pt2_compliant_tag)
	return getattr(torch.ops.libsystems, schema[:schema.index("(")]).default


attention = define("attention(Tensor q, Tensor k, Tensor v, int mask, "
	"float scale) -> (Tensor, Tensor)")
attention_backward = define("attention_backward(Tensor d_o, Tensor q, Tensor k, "
	"Tensor v, Tensor o, Tensor l, int mask, float scale, "
	"bool deterministic) -> (Tensor, Tensor, Tensor)")
packed_attention = define("packed_attention(Tensor q, Tensor k, Tensor v, "
	"Tensor starts_q, Tensor starts_k, int max_q, int max_k, int mask, "
	"float scale) -> (Tensor, Tensor)")
packed_attention_backward = define("packed_attention_backward(Tensor d_o, "
	"Tensor q, Tensor k, Tensor v, Tensor o, Tensor l, Tensor starts_q, "
	"Tensor starts_k, int max_q, int max_k, int mask, float scale, "
	"bool deterministic) -> (Tensor, Tensor, Tensor)")
norm = define("rms_norm(Tensor x, Tensor g, float eps) -> (Tensor, Tensor)")
norm_backward = define("rms_norm_backward(Tensor dy, Tensor x, Tensor g, "
	"Tensor rho, float eps) -> (Tensor, Tensor)")


def load(name):
	"""were these kernels compiled?"""
	found = glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)),
		f"_{name}.*so"))
	for path in found:
		torch.ops.load_library(path)
	return bool(found)


BUILT = load("operators")
IN_CPP = load("autograd_" + re.sub(r"\W", "_", torch.__version__))

# name the shapes of results
def sums_type(x):
	return torch.float64 if x.dtype == torch.float64 else torch.float32


def like(x):
	return torch.empty_like(x, memory_format=torch.contiguous_format)


def fake(name):
	return torch.library.register_fake("libsystems::" + name, lib=_library)


@fake("attention")
def _(q, k, v, mask, scale):
	check_attention(q, k, v, scale)
	return like(q), q.new_empty(q.shape[:-1], dtype=sums_type(q))


@fake("attention_backward")
def _(d_o, q, k, v, o, l, mask, scale, deterministic):
	return like(q), like(k), like(v)


@fake("packed_attention")
def _(q, k, v, starts_q, starts_k, max_q, max_k, mask, scale):
	check_packed(q, k, v, starts_q, starts_k, max_q, max_k, scale)
	return like(q), q.new_empty((q.shape[1], q.shape[0]), dtype=sums_type(q))


@fake("packed_attention_backward")
def _(d_o, q, k, v, *settings):
	return like(q), like(k), like(v)


@fake("rms_norm")
def _(x, g, eps):
	check_norm(x, g, eps)
	return like(x), x.new_empty((math.prod(x.shape[:-1]),), dtype=sums_type(x))


@fake("rms_norm_backward")
def _(dy, x, g, rho, eps):
	return like(x), like(g)

# name the gradients of attention
def formula(name, differentiate, keep=None):
	if IN_CPP:
		return
	torch.library.register_autograd("libsystems::" + name, differentiate,
		setup_context=keep, lib=_library)


def no_second(ctx, *gradients):
	raise NotImplementedError("libsystems: second derivatives are not supported")


def keep_attention(ctx, inputs, output):
	*arrays, ctx.mask, ctx.scale = inputs
	ctx.save_for_backward(*arrays, *output)
	ctx.mark_non_differentiable(output[1])


def differentiate_attention(ctx, d_o, d_l):
	return *attention_backward(d_o, *ctx.saved_tensors, ctx.mask, ctx.scale,
		torch.are_deterministic_algorithms_enabled()), None, None


def keep_packed(ctx, inputs, output):
	*arrays, starts_q, starts_k, _, _, _, _ = inputs
	ctx.settings = inputs[5:]
	ctx.save_for_backward(*arrays, *output, starts_q, starts_k)
	ctx.mark_non_differentiable(output[1])


def differentiate_packed(ctx, d_o, d_l):
	return *packed_attention_backward(d_o, *ctx.saved_tensors, *ctx.settings,
		torch.are_deterministic_algorithms_enabled()), *[None] * 6


formula("attention", differentiate_attention, keep_attention)
formula("attention_backward", no_second)
formula("packed_attention", differentiate_packed, keep_packed)
formula("packed_attention_backward", no_second)

# name the gradients of the norm
def keep_norm(ctx, inputs, output):
	x, g, ctx.eps = inputs
	ctx.save_for_backward(x, g, output[1])
	ctx.mark_non_differentiable(output[1])


def differentiate_norm(ctx, dy, d_rho):
	return *norm_backward(dy, *ctx.saved_tensors, ctx.eps), None


formula("rms_norm", differentiate_norm, keep_norm)
formula("rms_norm_backward", no_second)

# map operators over a dimension
def in_front(x, dim, n):
	return x.expand(n, *x.shape) if dim is None else x.movedim(dim, 0)


def map_batch(operator):
	def rule(info, dims, *inputs):
		return operator(*(in_front(x, dim, info.batch_size)
			if isinstance(x, torch.Tensor) else x
			for x, dim in zip(inputs, dims))), (0,) * len(
				operator._schema.returns)
	return rule


def example(x, dim, i):
	"""the i-th; of none, zeros"""
	return x if dim is None else x.select(dim, i) if x.size(dim) else x.sum(dim)


def map_each(operator):
	def rule(info, dims, *inputs):
		n = info.batch_size
		results = [operator(*(example(x, dim, i) for x, dim in zip(inputs, dims)))
			for i in range(max(n, 1))]
		return tuple(torch.stack(x)[:n] for x in zip(*results)), (0,) * len(
			operator._schema.returns)
	return rule


for operator, rule in ((attention, map_batch), (attention_backward, map_batch),
		(norm, map_each), (norm_backward, map_each)):
	torch.library.register_vmap(operator._schema.name, rule(operator),
		lib=_library)
