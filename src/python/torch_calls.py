"""torch_calls: what calls of libsystems.so from PyTorch have in common"""
import ctypes
import functools
import os

import torch

# statuses of FlashStatus and RmsnormStatus that are no mistakes of the caller
ERRORS = {5: RuntimeError, 6: torch.OutOfMemoryError, 7: RuntimeError}


@functools.cache
def library():
	here = os.path.dirname(os.path.abspath(__file__))
	shared = ctypes.CDLL(os.environ.get("LIBSYSTEMS",
		os.path.join(here, "../../build/libsystems.so")))
	return shared


def refuse(name, status):
	text = getattr(library(), name + "_status")
	text.restype = ctypes.c_char_p
	raise ERRORS.get(status, ValueError)(f"{name}: {text(status).decode()}")


def stream_of(index):
	return torch.cuda.current_stream(index).cuda_stream


raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", stream_of)

# remember what was prepared
class Prepared(dict):
	"""prepared calls, by all that they depend on"""
	MOST = 1024

	def remember(self, key, call):
		if len(self) >= self.MOST:
			self.clear()
		self[key] = call
		return call

# tell whether elements have places of their own
def separate(sizes):
	"""of pairs of a size and its stride"""
	reach = 1
	for stride, size in sorted((a, n) for n, a in sizes if n > 1):
		if stride < reach:
			return False
		reach = stride * size
	return True


def merged_stride(sizes):
	"""of these sizes as one; None: they are none"""
	sizes = [pair for pair in sizes if pair[0] > 1]
	if any(a != n * b for (_, a), (n, b) in zip(sizes, sizes[1:])):
		return None
	return sizes[-1][1] if sizes else 1

# register an operator
_operators = torch.library.Library("libsystems", "FRAGMENT")
TAGS = [getattr(torch.Tag, name) for name in ("pt2_compliant_tag",
	"cudagraph_unsafe") if hasattr(torch.Tag, name)]


def operator(schema, run, shapes):
	"""run, on a CPU or a GPU; shapes: tensors like its results, of no content"""
	name = schema[:schema.index("(")]
	_operators.define(schema, tags=TAGS)
	for kind in ("CPU", "CUDA"):
		_operators.impl(name, run, kind)
	torch.library.register_fake("libsystems::" + name, shapes, lib=_operators)
	return getattr(torch.ops.libsystems, name).default
