"""flash_attention: libsystems.so's attention as a function of PyTorch

from flash_attention import FlashAttention
O = FlashAttention.apply(Q, K, V, True)    # (..., n, D); last: is it causal?
"""
import ctypes
import math
import struct

import torch
from torch.autograd.function import once_differentiable

from torch_calls import (Prepared, library, merged_stride, operator, raw_stream,
	refuse, separate)

# describe the library's structures to Python
class Array(ctypes.Structure):
	_fields_ = [("at", ctypes.c_void_p), ("batch", ctypes.c_int64),
		("row", ctypes.c_int64), ("head", ctypes.c_int64)]


class AttentionShape(ctypes.Structure):
	_fields_ = [(name, ctypes.c_int64) for name in ("batch", "heads", "seqlen_q",
		"seqlen_k", "head_size")] + [("scale", ctypes.c_double)] + [(name,
		ctypes.c_int32) for name in ("causal", "type", "on_gpu", "gpu",
		"deterministic")] + [(name, ctypes.c_void_p) for name in ("stream",
		"scratch", "scratch_owner")]


class Call(ctypes.Structure):
	_fields_ = [("shape", AttentionShape), ("arrays", Array * 8)]


TYPES = {torch.float32: 0, torch.bfloat16: 2, torch.float16: 3}

# find the strides of heads
def sizes_of(x):
	"""batch, heads, n, D"""
	*outer, n, d = x.shape
	heads = outer.pop() if len(outer) > 1 else 1
	return math.prod(outer), heads, n, d

def dense_strides(x):
	"""of batch, row and head"""
	batch, heads, n, d = sizes_of(x)
	return heads * n * d, d, n * d

def strides_of(x):
	"""of batch, row and head; None: it is to be copied"""
	*outer, row, element = sizes = list(zip(x.shape, x.stride()))
	head = outer.pop() if len(outer) > 1 else (1, 1)
	batch = merged_stride(outer)
	if not separate(sizes) or batch is None or (element[0] > 1
			and element[1] != 1):
		return None
	return batch, row[1] if row[0] > 1 else element[0], head[1]

# prepare a call of attention
def check(Q, K, V, *others):
	if Q.dtype not in TYPES:
		raise TypeError(f"flash_attention: {Q.dtype} is not supported")
	if any(x.dtype != Q.dtype or x.device != Q.device for x in (K, V, *others)):
		raise ValueError("flash_attention: types or devices differ")
	if (min(Q.dim(), K.dim()) < 2 or K.shape != V.shape
			or K.shape[:-2] != Q.shape[:-2] or K.shape[-1] != Q.shape[-1]
			or any(x.shape != Q.shape for x in others)):
		sizes = ", ".join(str(tuple(x.shape)) for x in (Q, K, V, *others))
		raise ValueError(f"flash_attention: shapes {sizes} do not fit")
	if Q.device.type not in ("cpu", "cuda"):
		raise ValueError(f"flash_attention: {Q.device} is not supported")

def prepare(function, arrays, results, causal, deterministic, stream):
	"""the function, its FlashCall, which arrays, Q, K, V first, are copied, and
	L's shape and strides; no function: there is nothing to compute"""
	check(*arrays)
	Q, K = arrays[:2]
	batch, heads, n, d = sizes_of(Q)
	found = [strides_of(x) for x in arrays]
	copies = [strides is None for strides in found]
	found = [strides or dense_strides(x) for strides, x in zip(found, arrays)]
	dense = [dense_strides(x) for x in results]
	if len(arrays) == 3:
		rows = dense + found
	else:                                  # O is the first in FlashCall
		rows = found[3:4] + found[:3] + found[4:] + dense
	call = Call(AttentionShape(batch, heads, n, K.shape[-2], d, 0, causal,
		TYPES[Q.dtype], Q.is_cuda, max(Q.get_device(), 0), deterministic, stream),
		(Array * 8)(*(Array(None, *strides) for strides in rows)))
	empty = Q.numel() == 0 or K.numel() == 0
	L = torch.empty(Q.shape[:-1], device="meta")
	return (None if empty else function, bytes(call),
		copies if any(copies) else None, (tuple(L.shape), L.stride()))

# call the library's attention
def autocast_type(x):
	"""None: as it is"""
	return (torch.get_autocast_dtype("cuda")
		if torch.is_autocast_enabled() and x.is_cuda else None)

_forward, _backward = Prepared(), Prepared()
forward_addresses, backward_addresses = struct.Struct("5P"), struct.Struct("9P")
DENSE = torch.contiguous_format


def like(x):
	return torch.empty_like(x, memory_format=DENSE)

def attention_forward(Q, K, V, causal):
	"""Q, K, V as they are read, O, L"""
	stream = raw_stream(Q.get_device()) if Q.is_cuda else 0
	key = (Q.shape, K.shape, V.shape, Q.stride(), K.stride(), V.stride(), Q.dtype,
		K.dtype, V.dtype, Q.device, K.device, V.device, causal, stream)
	prepared = _forward.get(key)
	if prepared is None:
		prepared = _forward.remember(key, prepare(
			library().flash_attention_forward_at, (Q, K, V), (Q,), causal, False,
			stream))
	run, call, copies, rows = prepared
	if copies:
		Q, K, V = (x.contiguous() if copied else x for x, copied
			in zip((Q, K, V), copies))
	O = like(Q)
	L = torch.empty_strided(*rows, dtype=torch.float32, device=Q.device)
	if run is None:
		return Q, K, V, O.zero_(), L.fill_(-math.inf)
	status = run(call, forward_addresses.pack(O.data_ptr(), Q.data_ptr(),
		K.data_ptr(), V.data_ptr(), L.data_ptr()))
	if status:
		refuse("flash_attention", status)
	return Q, K, V, O, L

def attention_backward(dO, Q, K, V, O, L, causal):
	"""dQ, dK, dV"""
	stream = raw_stream(Q.get_device()) if Q.is_cuda else 0
	deterministic = torch.are_deterministic_algorithms_enabled()
	key = (Q.shape, K.shape, V.shape, O.shape, dO.shape, Q.stride(), K.stride(),
		V.stride(), O.stride(), dO.stride(), Q.dtype, K.dtype, V.dtype, O.dtype,
		dO.dtype, Q.device, K.device, V.device, O.device, dO.device, causal,
		deterministic, stream)
	prepared = _backward.get(key)
	if prepared is None:
		prepared = _backward.remember(key, prepare(
			library().flash_attention_backward_at, (Q, K, V, O, dO), (Q, K, V),
			causal, deterministic, stream))
	run, call, copies, _ = prepared
	if copies:
		Q, K, V, O, dO = (x.contiguous() if copied else x for x, copied
			in zip((Q, K, V, O, dO), copies))
	L = L.contiguous()
	dQ, dK, dV = like(Q), like(K), like(V)
	if run is None:
		return dQ.zero_(), dK.zero_(), dV.zero_()
	status = run(call, backward_addresses.pack(O.data_ptr(), Q.data_ptr(),
		K.data_ptr(), V.data_ptr(), L.data_ptr(), dO.data_ptr(), dQ.data_ptr(),
		dK.data_ptr(), dV.data_ptr()))
	if status:
		refuse("flash_attention", status)
	return dQ, dK, dV

# register attention as operators
forward_operator = operator("flash_attention(Tensor q, Tensor k, Tensor v, "
	"bool causal) -> (Tensor, Tensor)",
	lambda *arguments: attention_forward(*arguments)[3:],
	lambda Q, K, V, causal: (like(Q), Q.new_empty(Q.shape[:-1],
		dtype=torch.float32)))
backward_operator = operator("flash_attention_backward(Tensor d_o, Tensor q, "
	"Tensor k, Tensor v, Tensor o, Tensor l, bool causal) -> "
	"(Tensor, Tensor, Tensor)", attention_backward,
	lambda dO, Q, K, V, O, L, causal: (like(Q), like(K), like(V)))

def keep(ctx, inputs, output):
	*arrays, ctx.is_causal = inputs
	ctx.save_for_backward(*arrays, *output)
	ctx.mark_non_differentiable(output[1])


def differentiate(ctx, dO, dL):
	return *backward_operator(dO, *ctx.saved_tensors, ctx.is_causal), None


torch.library.register_autograd("libsystems::flash_attention", differentiate,
	setup_context=keep)

# call attention from autograd
class FlashAttention(torch.autograd.Function):
	@staticmethod
	def forward(ctx, Q, K, V, is_causal=False):
		dtype = autocast_type(Q)
		if dtype:
			Q, K, V = (x.to(dtype) if x.dtype in TYPES else x for x in (Q, K, V))
		ctx.is_causal = causal = bool(is_causal)
		if torch.compiler.is_compiling():
			O, L = forward_operator(Q, K, V, causal)
		else:
			Q, K, V, O, L = attention_forward(Q, K, V, causal)
		ctx.save_for_backward(Q, K, V, O, L)
		return O

	@staticmethod
	@once_differentiable
	def backward(ctx, dO):
		run = (backward_operator if torch.compiler.is_compiling()
			else attention_backward)
		gradients = run(dO, *ctx.saved_tensors, ctx.is_causal)
		return *(gradient if needed else None for gradient, needed
			in zip(gradients, ctx.needs_input_grad)), None
