"""package_torch: cases of an installed libsystems; package_torch.py CASE ..."""
import sys

import torch
from torch.nn import functional as F

import libsystems
from libsystems import operators
from raises import raises

# make inputs of attention and of the norm
def three(n=9, m=9, dtype=torch.float64, grad=True):
	return [torch.randn(2, 3, size, 16, dtype=dtype, requires_grad=grad)
		for size in (n, m, m)]


def rows(dtype=torch.float64, grad=True):
	return [torch.randn(shape, dtype=dtype, requires_grad=grad)
		for shape in ((2, 5, 8), (8,))]


def close(a, b, bound=1e-5):
	assert a.shape == b.shape and (a - b).norm() <= bound * b.norm(), (a, b)

# check gradients as PyTorch does
def gradients():
	for n, m, causal, scale in ((9, 9, True, None), (5, 11, False, 0.3),
			(11, 5, True, None), (1, 1, False, None)):
		few = [x.detach()[:1, :2, :, :4].requires_grad_() for x in three(n, m)]
		assert torch.autograd.gradcheck(lambda *x: libsystems.flash_attention(
			*x, causal, scale), few)
		few[1:] = [x.detach()[:, :1].requires_grad_() for x in few[1:]]
		assert torch.autograd.gradcheck(lambda *x: libsystems.flash_attention(
			*x, causal, scale, bottom_right=True), few)
	assert torch.autograd.gradcheck(libsystems.rms_norm, rows())
	x, _ = rows()
	assert torch.autograd.gradcheck(libsystems.rms_norm, [x])
	assert operators.IN_CPP, "the formulas in C++ were not compiled"

# compare with PyTorch's functions on layouts
def attends(q, k, v, causal):
	exact = F.scaled_dot_product_attention(*(x.double() for x in (q, k, v)),
		is_causal=causal)
	ours = libsystems.flash_attention(q, k, v, causal)
	assert ours.dtype == q.dtype and ours.is_contiguous()
	close(ours.double(), exact, {torch.float32: 1e-5, torch.bfloat16: 1e-2,
		torch.float16: 2e-3}[q.dtype])


def layouts():
	for dtype in torch.float32, torch.bfloat16, torch.float16:
		x = torch.randn(3, 65, 2, 24, dtype=dtype).transpose(1, 2)
		attends(x, x, x, True)                         # rows before heads
		attends(x[0], x[1], x[2], False)
		attends(x[0, 0], x[1, 0], x[2, 0], True)       # two dimensions
		attends(x[..., ::2], x[..., ::2], x[..., ::2], False)
		attends(x[:1].expand(3, 2, 65, 24), x, x, True)
		x = torch.randn(2, 3, 2, 9, 16, dtype=dtype).transpose(0, 1)
		attends(x, x, x, True)                         # sizes do not merge
	x = torch.randn(7, 5, 12)
	for part in x, x.transpose(0, 1), x[..., ::2], x[:, :, 3:9], x[:1, :1], x[:0]:
		g = torch.randn(part.shape[-1] * 2)[::2]
		close(libsystems.rms_norm(part, g), F.rms_norm(part, g.shape, g, 1e-5))
	empty = libsystems.flash_attention(x, x[:, :0], x[:, :0])
	assert torch.equal(empty, torch.zeros_like(x))

# compile and export a block
class Block(torch.nn.Module):
	def __init__(self):
		super().__init__()
		self.mix = torch.nn.Linear(32, 96)
		self.gain = torch.nn.Parameter(torch.randn(32))

	def forward(self, x):
		q, k, v = self.mix(libsystems.rms_norm(x, self.gain)).view(
			*x.shape[:2], 3, 2, 16).permute(2, 0, 3, 1, 4)
		o = libsystems.flash_attention(q, k, v, causal=True)
		return x + o.transpose(1, 2).reshape(x.shape)


def compiles():
	block, x = Block(), torch.randn(2, 10, 32)
	compiled = torch.compile(block, fullgraph=True, backend="aot_eager")
	close(compiled(x), block(x))
	for ours, theirs in zip(*(torch.autograd.grad(torch.sin(f(x)).sum(),
			list(block.parameters())) for f in (compiled, block))):
		close(ours, theirs)


def exports():
	block, x = Block(), torch.randn(2, 10, 32)
	sizes = {i: torch.export.Dim(name, min=2) for i, name in enumerate("bn")}
	program = torch.export.export(block, (x,), dynamic_shapes=(sizes,))
	longer = torch.randn(3, 17, 32)
	close(program.module()(longer), block(longer))

# capture calls into CUDA graphs
def graphs():
	if not torch.cuda.is_available():
		return
	def inputs():
		return torch.randn(2, 130, 32, device="cuda", requires_grad=True)
	def passes(block, x):
		y = block(x)
		return [y.detach(), *torch.autograd.grad(torch.sin(y).sum(),
			[x, *block.parameters()])]
	block, twin = Block().cuda(), Block().cuda()
	twin.load_state_dict(block.state_dict())
	xs = [inputs() for _ in range(4)]
	want = [passes(block, x) for x in xs]
	graphed = torch.cuda.make_graphed_callables(block, (inputs(),))
	compiled = torch.compile(twin, mode="reduce-overhead")
	other = torch.cuda.Stream()
	for x, exact in zip(xs, want):
		with torch.cuda.stream(other):
			passes(Block().cuda(), inputs())
		for captured in graphed, compiled:
			for a, b in zip(passes(captured, x), exact):
				close(a, b)

# transform functions with torch.func
def transforms():
	def attend(x):
		return torch.sin(libsystems.flash_attention(x, x, x, True)).sum()
	def norm(x, g):
		return torch.sin(libsystems.rms_norm(x, g)).sum()
	x, g = torch.randn(4, 2, 9, 16), torch.randn(4, 16)
	leaf = x.clone().requires_grad_()
	want, = torch.autograd.grad(attend(leaf), leaf)
	close(torch.func.grad(attend)(x), want)
	close(torch.vmap(torch.func.grad(attend))(x), want)
	ours = torch.vmap(torch.func.grad(norm, argnums=(0, 1)))(x, g)
	for i in range(len(x)):
		for a, b in zip(ours, torch.func.grad(norm, argnums=(0, 1))(x[i], g[i])):
			close(a[i], b)
	last = torch.vmap(libsystems.rms_norm, in_dims=(2, None), out_dims=2)(x, g[0])
	none = torch.vmap(libsystems.rms_norm)(x[:0], g[:0])
	assert none.shape == x[:0].shape
	close(last, libsystems.rms_norm(x, g[0]))

# refuse what the package does not do
def refuses():
	x, g = torch.randn(2, 9, 16), torch.ones(16)
	attend, norm = libsystems.flash_attention, libsystems.rms_norm
	for text, error, function, inputs in (
			("int32 is not supported", TypeError, attend, [x.int()] * 3),
			("types or devices", ValueError, attend, (x, x.double(), x)),
			("types or devices", ValueError, attend, (x, x.to("meta"), x)),
			("do not fit", ValueError, attend, (x, x, x[:, :8])),
			("do not fit", ValueError, attend, (x, x[:1], x[:1])),
			("do not fit", ValueError, attend, (x[0, 0], x[0, 0], x[0, 0])),
			("do not fit", ValueError, attend, (x[None], *[x.repeat(2, 1, 1)
				[None]] * 2)),
			("scale is", ValueError, attend, (x, x, x, False, -1.)),
			("scale is", ValueError, attend, (x, x, x, False, 0.)),
			("more than", ValueError, attend, [torch.zeros(1).expand(1, 4194241,
				1)] * 3),
			("no memory", torch.OutOfMemoryError, attend, [torch.zeros(1).expand(
				1 << 22, 16, 4194240, 64)] * 3),
			("int64 is not supported", TypeError, norm, (x.long(), g.long())),
			("do not fit", ValueError, norm, (x, g[:3])),
			("types or devices", ValueError, norm, (x, g.half())),
			("types or devices", ValueError, norm, (x.double(), g)),
			("eps is", ValueError, norm, (x, g, -1.))):
		raises(error, text, lambda: function(*inputs))
	with torch.autocast("cpu", dtype=torch.bfloat16):
		raises(TypeError, "int64 is not", lambda: attend(*[x.long()] * 3))
		raises(ValueError, "types or", lambda: attend(x, x.double(), x.double()))
		raises(TypeError, "complex64 is", lambda: norm(x.to(torch.complex64)))
	o, l = operators.attention(x, x, x, 1, 0.)
	raises(RuntimeError, "shapes of gradients", lambda:
		operators.attention_backward(o[:1], x, x, x, o, l, 1, 0., False))
	leaf = x.clone().requires_grad_()
	first, = torch.autograd.grad(torch.sin(attend(leaf, x, x)).sum(), leaf,
		create_graph=True)
	raises(RuntimeError, "second derivatives", lambda: first.sum().backward())
	raises(NotImplementedError, "forward mode", lambda: torch.func.jvp(
		lambda x: attend(x, x, x), (x,), (x,)))

for case in sys.argv[1:]:
	torch.manual_seed(1)
	globals()[case]()
