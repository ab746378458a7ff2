"""flash_attention: libsystems.so's attention as a function of PyTorch

from flash_attention import FlashAttention
O = FlashAttention.apply(Q, K, V, True)    # (..., n, D); last: is it causal?
"""
import ctypes
import os
import threading

import torch

class Array(ctypes.Structure):
	_fields_ = [("at", ctypes.c_void_p), ("batch", ctypes.c_int64),
		("row", ctypes.c_int64), ("head", ctypes.c_int64)]


class Shape(ctypes.Structure):
	_fields_ = [(name, ctypes.c_int64) for name in ("batch", "heads", "seqlen_q",
		"seqlen_k", "head_size")] + [("scale", ctypes.c_double)] + [(name,
		ctypes.c_int32) for name in ("causal", "type", "on_gpu",
		"deterministic")] + [("stream", ctypes.c_void_p)]


TYPES = {torch.float32: 0, torch.bfloat16: 2, torch.float16: 3}
NO_MEMORY = 6
_library = None


def library():
	global _library
	if _library is None:
		here = os.path.dirname(os.path.abspath(__file__))
		_library = ctypes.CDLL(os.environ.get("LIBSYSTEMS",
			os.path.join(here, "../../build/libsystems.so")))
		array, pointer = Array, ctypes.c_void_p
		_library.flash_attention_status.restype = ctypes.c_char_p
		_library.flash_attention_forward.argtypes = [ctypes.POINTER(Shape),
			array, pointer, array, array, array]
		_library.flash_attention_backward.argtypes = [ctypes.POINTER(Shape),
			array, array, array, array, array, array, array, pointer, array]
	return _library
def dense_rows(x):
	"""x, or a copy: numbers of a row follow one another, leading sizes merge"""
	fits = x.dim() < 5 and x.stride(-1) == 1 and min(x.stride()) > 0
	return x if fits else x.contiguous()


def as_heads(x):
	"""x as (batch, heads, n, D)"""
	while x.dim() < 4:
		x = x.unsqueeze(-3)
	return x.flatten(0, -4)


def array_of(x):
	x = as_heads(x)
	return Array(x.data_ptr(), x.stride(0), x.stride(2), x.stride(1))


def check(Q, K, V):
	if Q.dtype not in TYPES:
		raise TypeError(f"flash_attention: {Q.dtype} is not supported")
	if any(x.dtype != Q.dtype or x.device != Q.device for x in (K, V)):
		raise ValueError("flash_attention: types or devices differ")
	if (min(Q.dim(), K.dim()) < 2 or K.shape != V.shape
			or K.shape[:-2] != Q.shape[:-2] or K.shape[-1] != Q.shape[-1]):
		sizes = ", ".join(str(tuple(x.shape)) for x in (Q, K, V))
		raise ValueError(f"flash_attention: shapes {sizes} do not fit")
	if Q.device not in (torch.device("cpu"), torch.device("cuda:0")):
		raise ValueError(f"flash_attention: {Q.device} is not supported")


def shape_of(Q, K, is_causal):
	q, k = as_heads(Q), as_heads(K)
	stream = torch.cuda.current_stream(Q.device).cuda_stream if Q.is_cuda else 0
	return Shape(q.shape[0], q.shape[1], q.shape[2], k.shape[2], q.shape[3], 0,
		bool(is_causal), TYPES[Q.dtype], Q.is_cuda,
		torch.are_deterministic_algorithms_enabled(), stream)


_one_at_a_time = threading.Lock()


def call(function, shape, *arguments):
	with _one_at_a_time:
		status = function(ctypes.byref(shape), *arguments)
	if status:
		text = library().flash_attention_status(status).decode()
		error = torch.OutOfMemoryError if status == NO_MEMORY else ValueError
		raise error(f"flash_attention: {text}")


class FlashAttention(torch.autograd.Function):
	@staticmethod
	def forward(ctx, Q, K, V, is_causal=False):
		check(Q, K, V)
		Q, K, V = (dense_rows(x) for x in (Q, K, V))
		O = torch.empty_like(Q, memory_format=torch.contiguous_format)
		L = torch.empty(Q.shape[:-1], dtype=torch.float32, device=Q.device)
		shape = shape_of(Q, K, is_causal)
		call(library().flash_attention_forward, shape, array_of(O), L.data_ptr(),
			array_of(Q), array_of(K), array_of(V))
		ctx.save_for_backward(Q, K, V, O, L)
		ctx.is_causal = is_causal
		return O

	@staticmethod
	def backward(ctx, dO):
		Q, K, V, O, L = ctx.saved_tensors
		dO = dense_rows(dO)
		dQ, dK, dV = (torch.empty_like(x, memory_format=torch.contiguous_format)
			for x in (Q, K, V))
		shape = shape_of(Q, K, ctx.is_causal)
		call(library().flash_attention_backward, shape, array_of(dQ),
			array_of(dK), array_of(dV), array_of(Q), array_of(K), array_of(V),
			array_of(O), L.data_ptr(), array_of(dO))
		return dQ, dK, dV, None
