"""rmsnorm: libsystems.so's RMSNorm as a function of PyTorch

from rmsnorm import RMSNorm
y = RMSNorm.apply(x, g)                    # (..., H), (H); third: eps
"""
import ctypes
import math

import torch
from torch.autograd.function import once_differentiable

from torch_calls import (Prepared, library, merged_stride, operator, raw_stream,
	refuse)

# load the library's norm
class NormShape(ctypes.Structure):
	_fields_ = [(name, ctypes.c_int64) for name in ("rows", "width", "x_row",
		"y_row")] + [("eps", ctypes.c_double)] + [(name, ctypes.c_int32)
		for name in ("type", "version", "on_gpu", "gpu")] + [(name,
		ctypes.c_void_p) for name in ("stream", "scratch", "scratch_owner")]


TYPES = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}
CASTS = torch._C._dispatch_has_kernel_for_dispatch_key("aten::rms_norm",
	"AutocastCUDA")


def in_fp32(x):
	"""does autocast ask for it?"""
	return (CASTS and torch.is_autocast_enabled() and x.is_cuda
		and x.dtype in TYPES)

# prepare a call of the norm
def check(x, g, dy=None):
	if x.dtype not in TYPES:
		raise TypeError(f"rmsnorm: {x.dtype} is not supported")
	if x.device != g.device or g.dtype not in (x.dtype, torch.float32):
		raise ValueError("rmsnorm: types or devices differ")
	if x.dim() < 1 or g.shape != x.shape[-1:]:
		raise ValueError(f"rmsnorm: shapes {tuple(x.shape)}, {tuple(g.shape)} "
			"do not fit")
	if x.device.type not in ("cpu", "cuda"):
		raise ValueError(f"rmsnorm: {x.device} is not supported")
	if dy is not None and (dy.shape != x.shape or dy.dtype != x.dtype
			or dy.device != x.device):
		raise ValueError("rmsnorm: the gradient is not like x")

def row_stride(x):
	"""None: x is to be copied, so that the elements of a row are neighbours"""
	*outer, (width, one) = zip(x.shape, x.stride())
	row = merged_stride(outer)
	if all(n == 1 for n, _ in outer):
		row = width
	fits = (one == 1 or width == 1) and row is not None and row >= width
	return row if fits else None

def prepare(function, x, g, other, eps, version, stream):
	"""the function, its RmsnormShape, whether x and dy are copied, and how many
	rows there are; no function: nothing is to be computed. other: dy or None"""
	check(x, g, other)
	width, rows = x.shape[-1], math.prod(x.shape[:-1])
	steps = [row_stride(x), width if other is None else row_stride(other)]
	shape = NormShape(rows, width, *(step or width for step in steps), eps,
		TYPES[x.dtype], version, x.is_cuda, max(x.get_device(), 0), stream)
	return (function if x.numel() else None, bytes(shape), not steps[0],
		not steps[1], rows)

# pass rows to the library
_forward, _backward = Prepared(), Prepared()
DENSE = torch.contiguous_format
F32 = torch.float32


def pointers_to(name, arrays):
	"""a function of the library, of a shape and so many arrays"""
	function = getattr(library(), name)
	function.argtypes = [ctypes.c_char_p] + [ctypes.c_void_p] * arrays
	return function

def norm_forward(x, g, eps, version):
	"""y, rho"""
	stream = raw_stream(x.get_device()) if x.is_cuda else 0
	key = (x.shape, g.shape, x.stride(), x.dtype, g.dtype, x.device, g.device,
		eps, version, stream)
	prepared = _forward.get(key)
	if prepared is None:
		prepared = _forward.remember(key, prepare(pointers_to("rmsnorm_forward",
			4), x, g, None, eps, version, stream))
	run, shape, copied, _, rows = prepared
	y = torch.empty_like(x, memory_format=DENSE)
	rho = torch.empty_strided((rows,), (1,), dtype=F32, device=x.device)
	if run is None:
		return y, rho.fill_(eps ** -0.5 if eps > 0 else math.inf)
	if copied:
		x = x.contiguous()
	gain = g.contiguous().float()
	status = run(shape, y.data_ptr(), rho.data_ptr(), x.data_ptr(),
		gain.data_ptr())
	if status:
		refuse("rmsnorm", status)
	return y, rho

def norm_backward(dy, x, g, rho, eps, version):
	"""dx, dg"""
	stream = raw_stream(x.get_device()) if x.is_cuda else 0
	key = (x.shape, g.shape, dy.shape, x.stride(), dy.stride(), x.dtype, g.dtype,
		dy.dtype, x.device, g.device, dy.device, eps, version, stream)
	prepared = _backward.get(key)
	if prepared is None:
		prepared = _backward.remember(key, prepare(pointers_to(
			"rmsnorm_backward", 6), x, g, dy, eps, version, stream))
	run, shape, copied, dy_copied, rows = prepared
	dx = torch.empty_like(x, memory_format=DENSE)
	dg = torch.empty_like(g, memory_format=DENSE, dtype=F32)
	if run is None:
		return dx, dg.zero_().to(g.dtype)
	x = x.contiguous() if copied else x
	dy = dy.contiguous() if dy_copied else dy
	gain = g.contiguous().float()
	rho = None if rho is None else rho.contiguous()
	status = run(shape, dx.data_ptr(), dg.data_ptr(), dy.data_ptr(), x.data_ptr(),
		gain.data_ptr(), None if rho is None else rho.data_ptr())
	if status:
		refuse("rmsnorm", status)
	return dx, dg.to(g.dtype)

# register the norm as operators
forward_operator = operator("rmsnorm(Tensor x, Tensor g, float eps, int version) "
	"-> (Tensor, Tensor)", norm_forward, lambda x, g, eps, version: (
	torch.empty_like(x, memory_format=DENSE),
	x.new_empty((math.prod(x.shape[:-1]),), dtype=F32)))
backward_operator = operator("rmsnorm_backward(Tensor dy, Tensor x, Tensor g, "
	"Tensor? rho, float eps, int version) -> (Tensor, Tensor)", norm_backward,
	lambda dy, x, g, rho, eps, version: (
	torch.empty_like(x, memory_format=DENSE),
	torch.empty_like(g, memory_format=DENSE)))

def keep(ctx, inputs, output):
	x, g, *ctx.settings = inputs
	ctx.save_for_backward(x, g, output[1])
	ctx.mark_non_differentiable(output[1])


def differentiate(ctx, dy, drho):
	return *backward_operator(dy, *ctx.saved_tensors, *ctx.settings), None, None


torch.library.register_autograd("libsystems::rmsnorm", differentiate,
	setup_context=keep)

# call the norm from autograd
class RMSNorm(torch.autograd.Function):
	@staticmethod
	def forward(ctx, x, g, eps=1e-5, version=0):
		if in_fp32(x):
			x, g = x.float(), g.float()
		run = (forward_operator if torch.compiler.is_compiling()
			else norm_forward)
		y, rho = run(x, g, eps, version)
		ctx.save_for_backward(x, g, rho)
		ctx.settings = eps, version
		return y

	@staticmethod
	@once_differentiable
	def backward(ctx, dy):
		dx, dg = run_backward(dy, *ctx.saved_tensors, *ctx.settings)
		needs_x, needs_g, *_ = ctx.needs_input_grad
		return dx if needs_x else None, dg if needs_g else None, None, None


# find the gradients, each also by itself
def run_backward(dy, x, g, rho, eps, version):
	run = (backward_operator if torch.compiler.is_compiling()
		else norm_backward)
	return run(dy, x, g, rho, eps, version)


def gradients(dy, x, g, rho=None, eps=1e-5, version=0):
	"""dx, dg; without rho, a number for each row, it is computed again"""
	if rho is not None and (rho.dtype != F32 or rho.device != x.device
			or rho.numel() != math.prod(x.shape[:-1])):
		raise ValueError("rmsnorm: rho is not a number in fp32 for each row")
	return run_backward(dy, x, g, rho, eps, version)

def rmsnorm_backward_x(dy, x, g):
	return gradients(dy, x, g)[0]


def rmsnorm_backward_g(dy, x, g):
	return gradients(dy, x, g)[1]
