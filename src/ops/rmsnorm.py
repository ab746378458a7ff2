"""rmsnorm: libsystems.so's RMSNorm as a function of PyTorch

from rmsnorm import RMSNorm
y = RMSNorm.apply(x, g)                    # (..., H), (H); third: eps
"""
import ctypes
import os
import threading

import torch

class Shape(ctypes.Structure):
	_fields_ = [(name, ctypes.c_int64) for name in ("rows", "width", "x_row",
		"y_row")] + [("eps", ctypes.c_double)] + [(name, ctypes.c_int32)
		for name in ("type", "version", "on_gpu")] + [("stream",
		ctypes.c_void_p)]


TYPES = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}
NO_MEMORY = 6
_library = None


def library():
	global _library
	if _library is None:
		here = os.path.dirname(os.path.abspath(__file__))
		_library = ctypes.CDLL(os.environ.get("LIBSYSTEMS",
			os.path.join(here, "../../build/libsystems.so")))
		_library.rmsnorm_status.restype = ctypes.c_char_p
		for name, arrays in (("forward", 4), ("backward", 6)):
			getattr(_library, "rmsnorm_" + name).argtypes = [
				ctypes.POINTER(Shape)] + [ctypes.c_void_p] * arrays
	return _library
def check(x, g):
	if x.dtype not in TYPES:
		raise TypeError(f"rmsnorm: {x.dtype} is not supported")
	if x.device != g.device or g.dtype not in (x.dtype, torch.float32):
		raise ValueError("rmsnorm: types or devices differ")
	if x.dim() < 1 or g.shape != x.shape[-1:] or x.numel() == 0:
		raise ValueError(f"rmsnorm: shapes {tuple(x.shape)}, {tuple(g.shape)} "
			"do not fit")
	if x.device.type not in ("cpu", "cuda"):
		raise ValueError(f"rmsnorm: {x.device} is not supported")


def rows_of(x):
	"""x as (rows, width), or a copy: the numbers of a row follow one another"""
	rows = x if x.dim() == 2 else x.reshape(-1, x.shape[-1])
	fits = rows.stride(1) == 1 or rows.shape[1] == 1
	return rows if fits and row_of(rows) >= rows.shape[1] else rows.contiguous()


def row_of(rows):
	return rows.stride(0) if len(rows) > 1 else rows.shape[1]


def shape_of(x, y, eps, version):
	stream = torch.cuda.current_stream(x.device).cuda_stream if x.is_cuda else 0
	return Shape(len(x), x.shape[1], row_of(x), row_of(y), eps, TYPES[x.dtype],
		version, x.is_cuda, stream)


_one_at_a_time = threading.Lock()


def call(function, shape, *arguments):
	with _one_at_a_time:
		status = function(ctypes.byref(shape), *arguments)
	if status:
		text = library().rmsnorm_status(status).decode()
		error = torch.OutOfMemoryError if status == NO_MEMORY else ValueError
		raise error(f"rmsnorm: {text}")


class RMSNorm(torch.autograd.Function):
	@staticmethod
	def forward(ctx, x, g, eps=1e-5, version=0):
		check(x, g)
		rows, gain = rows_of(x), g.contiguous().float()
		y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
		rho = torch.empty(len(rows), dtype=torch.float32, device=x.device)
		call(library().rmsnorm_forward, shape_of(rows, rows_of(y), eps, version),
			y.data_ptr(), rho.data_ptr(), rows.data_ptr(), gain.data_ptr())
		ctx.save_for_backward(x, g, rho)
		ctx.settings = eps, version
		return y

	@staticmethod
	def backward(ctx, dy):
		x, g, rho = ctx.saved_tensors
		dx, dg = gradients(dy, x, g, rho, *ctx.settings)
		return dx, dg, None, None


def gradients(dy, x, g, rho=None, eps=1e-5, version=0):
	"""dx, dg; without rho, a number for each row, it is computed again"""
	check(x, g)
	if dy.shape != x.shape or dy.dtype != x.dtype or dy.device != x.device:
		raise ValueError("rmsnorm: the gradient is not like x")
	rows, above, gain = rows_of(x), rows_of(dy), g.contiguous().float()
	dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
	dg = torch.empty(g.shape, dtype=torch.float32, device=x.device)
	call(library().rmsnorm_backward, shape_of(rows, above, eps, version),
		dx.data_ptr(), dg.data_ptr(), above.data_ptr(), rows.data_ptr(),
		gain.data_ptr(), None if rho is None else rho.data_ptr())
	return dx, dg.to(g.dtype)


def rmsnorm_backward_x(dy, x, g):
	return gradients(dy, x, g)[0]


def rmsnorm_backward_g(dy, x, g):
	return gradients(dy, x, g)[1]
