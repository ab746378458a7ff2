"""callers_torch: what callers of PyTorch do to our functions

callers_torch.py FUNCTION DEVICE CASE ...    attention or rmsnorm; cpu or cuda
"""
import sys
import threading

import torch
from torch.nn import functional as F

import libsystems
from gradients import gradients
from libsystems import operators
from raises import raises

BOUNDS = {torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 3e-3,
	torch.float64: 1e-10}
WIDTH = 16

# the two functions and their inputs
class Attention:
	operator, settings = operators.attention, (1, 0.)

	def ours(self, q, k, v):
		return libsystems.flash_attention(q, k, v, causal=True)

	def plain(self, q, k, v):
		return F.scaled_dot_product_attention(q, k, v, is_causal=True)

	def autocast_type(self, dtype):
		return dtype

	def backward(self, inputs, results):
		"""the operator of the backward pass, and what it takes"""
		o, l = results
		return operators.attention_backward, (torch.sin(o), *inputs, o, l, 1,
			0., False)

	def inputs(self, device, dtype, shape=(2, 3, 33, WIDTH), view=lambda x: x):
		"""leaves, and what is to be called with them"""
		leaves = [torch.randn(shape, device=device).to(dtype).requires_grad_()
			for _ in range(3)]
		return leaves, lambda leaves: [view(x) for x in leaves]


class Norm:
	operator, settings = operators.norm, (1e-5,)
	ours = staticmethod(libsystems.rms_norm)

	def plain(self, x, g):
		return F.rms_norm(x, g.shape, g, 1e-5)

	def autocast_type(self, dtype):
		return torch.float32

	def backward(self, inputs, results):
		y, rho = results
		return operators.norm_backward, (torch.sin(y), *inputs, rho, 1e-5)

	def inputs(self, device, dtype, shape=(2, 3, 33, WIDTH), view=lambda x: x):
		leaves = [torch.randn(shape, device=device).to(dtype),
			(1 + torch.randn(WIDTH, device=device) / 4).to(dtype)]
		return ([x.requires_grad_() for x in leaves],
			lambda leaves: [view(leaves[0]), leaves[1]])


def types_on(device):
	return list(BOUNDS)[:None if device == "cpu" else 3]


def both_passes(function, leaves, arguments):
	"""the result and all gradients, for a gradient that is always the same"""
	y = function(*arguments(leaves))
	dy = torch.sin(torch.arange(y.numel(), device=y.device)).view(y.shape)
	return [y, *gradients(y, leaves, dy.to(y.dtype))]

# cases: tensors of all layouts, and of no elements
VIEWS = {
	"dense": ((2, 3, 33, WIDTH), lambda x: x),
	"transposed": ((2, 33, 3, WIDTH), lambda x: x.transpose(1, 2)),
	"packed": ((2, 33, 3, 3 * WIDTH),
		lambda x: x[..., WIDTH:2 * WIDTH].transpose(1, 2)),
	"expanded": ((2, 1, 33, WIDTH), lambda x: x.expand(2, 3, 33, WIDTH)),
	"overlapping": ((900,),
		lambda x: x.as_strided((2, 3, 33, WIDTH), (20, 300, 8, 1))),
	"gaps": ((2, 3, 33, 2 * WIDTH), lambda x: x[..., ::2]),
	"columns": ((2, 3, WIDTH, 33), lambda x: x.mT),
	"sizes of one": ((33, 1, 1, WIDTH), lambda x: x.permute(1, 2, 0, 3)),
	"one row": ((1, WIDTH), lambda x: x),
	"five sizes": ((2, 2, 3, 33, WIDTH), lambda x: x.transpose(0, 1)),
	"five that merge": ((2, 2, 33, 3, WIDTH), lambda x: x.transpose(2, 3)),
	"two sizes": ((33, WIDTH), lambda x: x),
}


def case_layouts(kind, device):
	for dtype in types_on(device):
		for name, (shape, view) in VIEWS.items():
			leaves, arguments = kind.inputs(device, dtype, shape, view)
			exact = [x.detach().double().requires_grad_() for x in leaves]
			got = both_passes(kind.ours, leaves, arguments)
			want = both_passes(kind.plain, exact, arguments)
			least = want[0].norm() / 10                # some gradients are 0
			for a, b in zip(got, want):
				error = (a.double() - b).norm() / max(b.norm(), least)
				assert a.dtype == dtype and error < BOUNDS[dtype], (name, dtype,
					error.item())

# call with tensors without elements
def case_empty(kind, device):
	if isinstance(kind, Attention):
		shapes = (((0, 3, 5, 16),) * 3, ((2, 3, 0, 16), *((2, 3, 5, 16),) * 2),
			((5, 16), (0, 16), (0, 16)), ((2, 5, 0),) * 3)
	else:
		shapes = ((0, 16), (16,)), ((3, 0, 16), (16,)), ((3, 0), (0,))
	for sizes in shapes:
		leaves = [torch.randn(size, device=device, requires_grad=True)
			for size in sizes]
		y, *gradients = both_passes(kind.ours, leaves, lambda leaves: leaves)
		assert y.shape == leaves[0].shape and not y.any()
		for x, dx in zip(leaves, gradients):
			assert dx.shape == x.shape and not dx.any()

# cases: gradients that are not wanted, or saved elsewhere
def case_gradients(kind, device):
	leaves, arguments = kind.inputs(device, torch.float32)
	y, *want = both_passes(kind.ours, leaves, arguments)
	for mode in (torch.no_grad, torch.inference_mode):
		with mode():
			alone = kind.ours(*leaves)
		assert torch.equal(alone, y) and not alone.requires_grad
	for i in range(len(leaves)):
		some = [x.detach().requires_grad_(i == j) for j, x in enumerate(leaves)]
		_, dx = both_passes(lambda x: kind.ours(*some), some[i:i + 1],
			lambda leaves: leaves)
		assert torch.allclose(dx, want[i], atol=1e-5)
	kind.ours(*leaves).sum().backward()                # expanded
	first = torch.autograd.grad(kind.ours(*leaves).square().sum(), leaves[0],
		create_graph=True)[0]
	raises(RuntimeError, "second derivatives", lambda: first.sum().backward())


def case_hooks(kind, device):
	leaves, arguments = kind.inputs(device, torch.float32)
	want = both_passes(kind.ours, leaves, arguments)
	def turned(x):
		return x.mT.contiguous().mT if x.dim() > 1 else x
	hooks = torch.autograd.graph
	for moved in (hooks.save_on_cpu(), hooks.saved_tensors_hooks(turned, turned)):
		with moved:
			got = both_passes(kind.ours, leaves, arguments)
		assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(got, want))

# cases: autocast and compiled programs
def case_autocast(kind, device):
	for dtype in (torch.bfloat16, torch.float16):
		for given in (torch.float32, dtype):
			same_as_cast(kind, device, given, dtype)


def same_as_cast(kind, device, given, dtype):
	"""autocast to dtype: the same as inputs of the type that is computed in"""
	leaves, arguments = kind.inputs(device, given)
	used = kind.autocast_type(dtype)
	for function in (kind.ours, torch.compile(kind.ours, fullgraph=True,
			backend="aot_eager")):
		with torch.autocast(device, dtype=dtype):
			got = both_passes(function, leaves, arguments)
		cast = [x.detach().to(used).requires_grad_() for x in leaves]
		want = both_passes(kind.ours, cast, arguments)
		assert got[0].dtype == used and torch.equal(got[0], want[0])
		for a, b in zip(got[1:], want[1:]):
			assert a.dtype == given
			assert torch.allclose(a, b.to(given), atol=1e-2, rtol=2e-2), used

# compile programs that call our functions
def compiled(function, device):
	return torch.compile(function, fullgraph=True,
		backend="aot_eager" if device == "cpu" else "inductor")


def case_compiles(kind, device):
	for dtype in types_on(device):
		leaves, arguments = kind.inputs(device, dtype)
		def program(*inputs):
			return kind.ours(*(2 * x for x in inputs)) + 1
		got = both_passes(compiled(program, device), leaves, arguments)
		want = both_passes(program, leaves, arguments)
		for a, b in zip(got, want):
			assert torch.allclose(a, b, atol=BOUNDS[dtype], rtol=BOUNDS[dtype])


def case_operator(kind, device):
	"""PyTorch's own checks: schema, shapes, gradients"""
	for dtype in types_on(device):
		for name in ("dense", "transposed"):
			leaves, arguments = kind.inputs(device, dtype, *VIEWS[name])
			inputs = [x.detach().requires_grad_() for x in arguments(leaves)]
			torch.library.opcheck(kind.operator, (*inputs, *kind.settings))
			inputs = [x.detach() for x in inputs]
			torch.library.opcheck(*kind.backward(inputs, kind.operator(*inputs,
				*kind.settings)))

# cases: many calls, threads, streams and GPUs
def repeat(kind, device, calls, wrong):
	"""appends how many elements of so many calls differ from the first ones"""
	leaves, arguments = kind.inputs(device, torch.float32 if device == "cpu"
		else torch.bfloat16, (2, 3, 33 + 16 * len(wrong), WIDTH))
	want = both_passes(kind.ours, leaves, arguments)
	bad = torch.zeros((), dtype=torch.long, device=device)
	wrong.append(bad)
	for i in range(calls):
		if i % 8:
			got = [kind.ours(*leaves)]
		else:
			got = both_passes(kind.ours, leaves, arguments)
		bad += sum((a != b).sum() for a, b in zip(got, want))
		yield

# call from several threads
def case_threads(kind, device):
	"""a thread for each GPU, or two"""
	torch.use_deterministic_algorithms(True)
	places = [f"cuda:{i}" for i in range(torch.cuda.device_count())] \
		if device != "cpu" else []
	places, wrong = places if len(places) > 1 else [device] * 2, []
	calls = []                              # of each thread that ended well
	def work(place):
		calls.append(sum(1 for _ in repeat(kind, place, 400, wrong)))
	threads = [threading.Thread(target=work, args=(place,)) for place in places]
	for thread in threads:
		thread.start()
	for thread in threads:
		thread.join()
	assert calls == [400] * len(places), calls
	assert not any(bad.item() for bad in wrong), wrong

# take turns on two streams and on all GPUs
def case_streams(kind, device):
	"""calls take turns on two streams"""
	torch.use_deterministic_algorithms(True)
	streams, wrong, calls = [torch.cuda.Stream() for _ in range(2)], [], []
	for stream in streams:
		with torch.cuda.stream(stream):
			calls.append(repeat(kind, device, 5000, wrong))
			next(calls[-1])
	for i in range(2 * 4999):
		with torch.cuda.stream(streams[i % 2]):
			next(calls[i % 2])
	torch.cuda.synchronize()
	assert not any(bad.item() for bad in wrong), wrong


def case_devices(kind, device):
	"""another GPU than the current one"""
	leaves, arguments = kind.inputs("cpu", torch.float32)
	results = []
	for place in ("cuda:0", f"cuda:{torch.cuda.device_count() - 1}"):
		there = [x.detach().to(place).requires_grad_() for x in leaves]
		got = both_passes(kind.ours, there, arguments)
		results.append([x.cpu() for x in got])
		assert torch.cuda.current_device() == 0
	assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(*results))

# capture both passes into a CUDA graph
def case_captures(kind, device):
	torch.use_deterministic_algorithms(True)
	leaves, arguments = kind.inputs(device, torch.bfloat16)
	with torch.cuda.stream(other := torch.cuda.Stream()):
		both_passes(kind.ours, leaves, arguments)
	torch.cuda.synchronize()
	with torch.cuda.graph(graph := torch.cuda.CUDAGraph()):
		got = both_passes(kind.ours, leaves, arguments)
	with torch.no_grad():
		for x in leaves:
			x.copy_(torch.randn_like(x))
	with torch.cuda.stream(other):
		both_passes(kind.ours, *kind.inputs(device, torch.bfloat16))
	graph.replay()
	want = both_passes(kind.ours, leaves, arguments)
	assert all(torch.equal(a, b) for a, b in zip(got, want))


def main():
	function, device, *cases = sys.argv[1:]
	kind = Attention() if function == "attention" else Norm()
	for case in cases:
		torch.manual_seed(3)
		globals()["case_" + case](kind, device)


if __name__ == "__main__":
	main()
