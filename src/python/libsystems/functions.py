"""functions: what a program calls"""
import math
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


def _autocast(*tensors, to=None):
	"""cast under autocast, to its type or that one, what it casts"""
	kind = tensors[0].device.type
	if kind not in ("cpu", "cuda") or not torch.is_autocast_enabled(kind):
		return tensors
	to = to or torch.get_autocast_dtype(kind)
	return [x.to(to) if x is not None and x.is_floating_point()
		and x.dtype != torch.float64 else x for x in tensors]


def _scale(scale):
	"""the operators' word for it: 0 is the usual one"""
	if scale is not None and not 0 < scale < math.inf:
		raise ValueError(f"flash_attention: scale is {scale}, not positive")
	return 0. if scale is None else scale

# call attention
def flash_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool = False,
		scale: Optional[float] = None, bottom_right: bool = False) -> Tensor:
	"""softmax(scale q k^T) v, exactly, without the matrix of scores in memory.

	q: (..., heads, n, D), of any strides; k, v: (..., kv_heads, m, D). kv_heads
	divides heads: query head h reads head h // (heads // kv_heads) of k and v.
	Of three dimensions the first counts sequences, of one head. The result is
	like q, dense.
	Types: float32, bfloat16 or float16, equal for all; on a CPU float64 as well.
	n and m are at most 4194240. Without a GPU D is any; a GPU's kernels take 16,
	32, 64, 80 and 128 and, more slowly, 96 and 256.
	causal: query i sees keys 0 ... i or, with bottom_right, 0 ... i + m - n, so
	that the last query sees all; a query that sees no key gets zeros. scale:
	1/sqrt(D), if it is None.

	Differentiable once with respect to q, k and v. Gradients have equal bits on
	every run if torch.use_deterministic_algorithms is on, and on a CPU.
	Raises TypeError for a type that is not supported, ValueError for shapes,
	types or devices that do not fit, torch.OutOfMemoryError, and RuntimeError
	for a GPU for which the library was not compiled.
	"""
	q, k, v = _autocast(q, k, v)
	scale = _scale(scale)
	mask = (2 if bottom_right else 1) if causal else 0
	try:
		return operators.attention(q, k, v, mask, scale)[0]
	except RuntimeError as error:
		failure = error
	raise _explain(failure, operators.check_lengths, q, k, v, scale)

# call attention of packed sequences
def flash_attention_varlen(q: Tensor, k: Tensor, v: Tensor,
		cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_seqlen_q: int,
		max_seqlen_k: int, causal: bool = False, scale: Optional[float] = None,
		bottom_right: bool = False) -> Tensor:
	"""flash_attention of sequences that are packed one after the other.

	q: (total_q, heads, D); k, v: (total_k, kv_heads, D), of any strides; the
	result is like q, dense. cu_seqlens_q, cu_seqlens_k: (batch + 1), int32, dense
	and on the same device: 0, then where each sequence ends; the last is total_q
	or total_k. max_seqlen_q, max_seqlen_k: at least the longest sequence's.
	Sequences may be empty. These numbers are checked on a CPU; a GPU's are not
	looked at on the host. The rest, and errors, as for flash_attention; masks are
	those of each sequence. On a GPU the kernels are those that need no tensor
	maps, which are slower.
	"""
	q, k, v = _autocast(q, k, v)
	scale = _scale(scale)
	mask = (2 if bottom_right else 1) if causal else 0
	inputs = q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k
	try:
		return operators.packed_attention(*inputs, mask, scale)[0]
	except RuntimeError as error:
		failure = error
	raise _explain(failure, operators.check_sequences, *inputs, scale)

# call the norm
def rms_norm(x: Tensor, weight: Optional[Tensor] = None,
		eps: float = 1e-5) -> Tensor:
	"""weight x / sqrt(mean(x^2) + eps), the mean over the last dimension.

	x: (..., width), of any strides; weight: (width), or None for ones. The result
	is like x, dense. Types: float32, bfloat16 or float16, on a CPU float64 as
	well; weight has x's type or, unless that is float64, float32. Under autocast
	it computes in float32.

	Differentiable once with respect to x and weight; gradients have equal bits on
	every run. Raises TypeError for a type that is not supported, ValueError for
	shapes, types or devices that do not fit, torch.OutOfMemoryError, and
	RuntimeError for a GPU for which the library was not compiled.
	"""
	x, weight = _autocast(x, weight, to=torch.float32)
	if weight is None:
		weight = x.new_ones(x.shape[-1:])
	try:
		return operators.norm(x, weight, eps)[0]
	except RuntimeError as error:
		failure = error
	raise _explain(failure, operators.check_norm, x, weight, eps)
