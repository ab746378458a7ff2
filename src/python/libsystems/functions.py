"""functions: what a program calls"""
from typing import Optional

import torch
from torch import Tensor

from . import operators

# prepare a call and explain its failure
def _explain(error, check, *arguments):
	if not operators.BUILT:
		return RuntimeError("libsystems: the operators are not compiled; "
			"pip install ./python")
	check(*arguments)
	if "no memory" in str(error):
		return torch.OutOfMemoryError(str(error))
	return error


def _autocast(x):
	kind = x.device.type
	if (kind in ("cpu", "cuda") and torch.is_autocast_enabled(kind)
			and x.dtype != torch.float64):
		return torch.get_autocast_dtype(kind)
	return None

# call attention
def flash_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool = False,
		scale: Optional[float] = None, bottom_right: bool = False) -> Tensor:
	"""softmax(scale q k^T) v, exactly, without the matrix of scores in memory.

	q: (..., heads, n, D), of any strides; k, v: (..., kv_heads, m, D). kv_heads
	divides heads: query head h reads head h // (heads // kv_heads) of k and v.
	Of three dimensions the first counts sequences, of one head. The result is
	like q, dense.
	Types: float32, bfloat16 or float16, equal for all; on a CPU float64 as well.
	Without a GPU D is any; a GPU's kernels take 16, 32, 64, 80 and 128 and, more
	slowly, 96 and 256.
	causal: query i sees keys 0 ... i or, with bottom_right, 0 ... i + m - n, so
	that the last query sees all; a query that sees no key gets zeros. scale:
	1/sqrt(D), if it is None.

	Differentiable once with respect to q, k and v. Gradients have equal bits on
	every run if torch.use_deterministic_algorithms is on, and on a CPU.
	Raises TypeError for a type that is not supported, ValueError for shapes,
	types or devices that do not fit, torch.OutOfMemoryError, and RuntimeError
	for a GPU for which the library was not compiled.
	"""
	if (dtype := _autocast(q)) is not None:
		q, k, v = q.to(dtype), k.to(dtype), v.to(dtype)
	scale = 0. if scale is None else scale
	mask = (2 if bottom_right else 1) if causal else 0
	try:
		return operators.attention(q, k, v, mask, scale)[0]
	except RuntimeError as error:
		failure = error
	raise _explain(failure, operators.check_attention, q, k, v, scale)

# call attention of packed sequences
def flash_attention_varlen(q: Tensor, k: Tensor, v: Tensor,
		cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_seqlen_q: int,
		max_seqlen_k: int, causal: bool = False, scale: Optional[float] = None,
		bottom_right: bool = False) -> Tensor:
	"""flash_attention of sequences that are packed one after the other.

	q: (total_q, heads, D); k, v: (total_k, kv_heads, D), of any strides; the
	result is like q, dense. cu_seqlens_q, cu_seqlens_k: (batch + 1), int32, dense
	and on the same device: 0, then where each sequence ends. They are not
	looked at on the host, and must increase. max_seqlen_q, max_seqlen_k: at least
	the longest sequence's. Sequences may be empty. The rest, and errors, as for
	flash_attention; masks are those of each sequence. On a GPU the kernels are
	those that need no tensor maps, which are slower.
	"""
	if (dtype := _autocast(q)) is not None:
		q, k, v = q.to(dtype), k.to(dtype), v.to(dtype)
	scale = 0. if scale is None else scale
	mask = (2 if bottom_right else 1) if causal else 0
	inputs = q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k
	try:
		return operators.packed_attention(*inputs, mask, scale)[0]
	except RuntimeError as error:
		failure = error
	raise _explain(failure, operators.check_packed, *inputs, scale)

# call the norm
def rms_norm(x: Tensor, weight: Optional[Tensor] = None,
		eps: float = 1e-5) -> Tensor:
	"""weight x / sqrt(mean(x^2) + eps), the mean over the last dimension.

	x: (..., width), of any strides; weight: (width), or None for ones. The result
	is like x, dense. Types: float32, bfloat16 or float16, on a CPU float64 as
	well; weight has x's type or float32. Under autocast it computes in float32.

	Differentiable once with respect to x and weight; gradients have equal bits on
	every run. Raises TypeError for a type that is not supported, ValueError for
	shapes, types or devices that do not fit, torch.OutOfMemoryError, and
	RuntimeError for a GPU for which the library was not compiled.
	"""
	if _autocast(x) is not None:
		x, weight = x.float(), None if weight is None else weight.float()
	if weight is None:
		weight = x.new_ones(x.shape[-1:])
	try:
		return operators.norm(x, weight, eps)[0]
	except RuntimeError as error:
		failure = error
	raise _explain(failure, operators.check_norm, x, weight, eps)
