#!/usr/bin/env bash
# test_flash_torch.sh: attention in PyTorch, through the package
. tests/python/torch.sh
. tests/python/callers.sh
loads_once() {
	local said
	said=$(python3 -c "import ctypes
print('once')
ctypes.CDLL('$site/libsystems/libsystems.so')")
	[ "$said" = once ]
}
agrees() { # agrees DEVICE TYPE BOUND [TYPE BOUND]...
	python3 - "$@" <<'END'
import sys
import torch
from gradients import gradients
from libsystems import flash_attention
device = sys.argv[1]
def compare(dtype, bound):
	torch.manual_seed(1)
	for n, m, causal in ((128, 128, True), (65, 65, True), (1, 1, False),
			(191, 77, False), (64, 1000, False), (300, 300, True)):
		leaves = [torch.randn(3, size, 2, 64, device=device).to(dtype)
			.requires_grad_() for size in (n, m, m)]
		def run(attend, leaves):
			Q, K, V = (x.transpose(1, 2) for x in leaves)
			O = attend(Q, K, V)
			g = torch.sin(torch.arange(O.numel(), device=device).float()).to(
				O.dtype).view(3, n, 2, 64).transpose(1, 2)
			return [O, *gradients(O, leaves, g)]
		exact = [x.detach().double().requires_grad_() for x in leaves]
		ours = run(lambda q, k, v: flash_attention(q, k, v, causal), leaves)
		want = run(lambda q, k, v:
			torch.nn.functional.scaled_dot_product_attention(q, k, v,
			is_causal=causal), exact)
		for a, b in zip(ours, want):
			size = max(b.norm(), want[0].norm() / 4)       # b may be 0
			error = (a.double() - b).norm() / size
			assert error < bound, (dtype, n, m, causal, error.item())
	x = torch.randn(2, 3, 2, 65, 64, device=device).to(dtype)
	each = [flash_attention(*[x[i, j, h]] * 3, True) for j in range(3)
		for i in range(2) for h in range(2)]               # (65, 64)
	x = x.transpose(0, 1)                              # its sizes do not merge
	assert torch.equal(flash_attention(x, x, x, True).flatten(0, -3),
		torch.stack(each)), "five dimensions"
for name, bound in zip(sys.argv[2::2], sys.argv[3::2]):
	compare(getattr(torch, name), float(bound))
END
}
shares() { # shares DEVICE TYPE BOUND [TYPE BOUND]...
	python3 - "$@" <<'END'
import sys
import torch
from gradients import gradients
from libsystems import flash_attention
device = sys.argv[1]
torch.use_deterministic_algorithms(True)
def compare(dtype, bound):
	torch.manual_seed(4)
	def made(*shape):
		return torch.randn(shape, device=device).to(dtype).requires_grad_()
	for heads, shared, n, m, causal, end in ((8, 2, 65, 65, True, False),
			(6, 1, 33, 120, True, True), (4, 4, 20, 177, True, True),
			(6, 3, 100, 40, False, False), (4, 2, 1, 64, True, True)):
		leaves = [made(2, heads, n, 64), *(made(2, shared, m, 64)
			for _ in range(2))]
		g = torch.randn_like(leaves[0])
		def run(attend, leaves, g):
			o = attend(*leaves)
			return [o, *gradients(o, leaves, g)]
		def ours():
			return run(lambda q, k, v: flash_attention(q, k, v, causal,
				bottom_right=end), leaves, g)
		seen = torch.ones(n, m, dtype=torch.bool, device=device).tril(
			m - n if end else 0) if causal else None
		exact = [x.detach().double().requires_grad_() for x in leaves]
		got, want = ours(), run(lambda q, k, v:
			torch.nn.functional.scaled_dot_product_attention(q, k, v,
			attn_mask=seen, enable_gqa=True), exact, g.double())
		for a, b, again in zip(got, want, ours()):
			error = (a.double() - b).norm() / max(b.norm(), want[0].norm() / 4)
			assert error < bound, (dtype, heads, shared, n, m, error.item())
			assert torch.equal(a, again)
	q, k = made(1, 2, 100, 64), made(1, 1, 33, 64)
	o = flash_attention(q, k, k, causal=True, bottom_right=True)
	assert not o[:, :, :67].any() and o[:, :, 67:].any()
	assert not gradients(o.sum(), [q])[0][:, :, :67].any()
for name, bound in zip(sys.argv[2::2], sys.argv[3::2]):
	compare(getattr(torch, name), float(bound))
END
}
packs() { # packs DEVICE TYPE BOUND
	python3 - "$@" <<'END'
import sys
import torch
from gradients import gradients
from libsystems import flash_attention, flash_attention_varlen, operators
device, dtype = sys.argv[1], getattr(torch, sys.argv[2])
bound = float(sys.argv[3])
torch.manual_seed(5)
ends_q, ends_k = [0, 37, 37, 102, 230], [0, 53, 70, 70, 171]
def made(rows, heads):                                 # begins in its storage
	return torch.randn(rows + 3, 2 * heads, 64, device=device).to(dtype)[3:,
		::2].requires_grad_()
q, k, v = made(230, 4), made(171, 2), made(171, 2)
starts = [torch.tensor(x, dtype=torch.int32, device=device)
	for x in (ends_q, ends_k)]
g = torch.randn_like(q)
def grads(o):
	return gradients(o, (q, k, v), g)
for causal, end in ((False, False), (True, False), (True, True)):
	o = flash_attention_varlen(q, k, v, *starts, 128, 101, causal,
		bottom_right=end)
	alone = torch.cat([flash_attention(*(x[None].transpose(1, 2) for x in
		(q[a:b], k[c:d], v[c:d])), causal, bottom_right=end)[0].transpose(0, 1)
		for a, b, c, d in zip(ends_q, ends_q[1:], ends_k, ends_k[1:])])
	assert o.is_contiguous()
	for a, b in zip((o, *grads(o)), (alone, *grads(alone))):
		assert (a - b).norm() <= bound * b.norm(), (causal, end)
three = torch.randn(230, 3, 2, 64, device=device).to(dtype).unbind(1)
for x in three, [x[100:] for x in three]:
	ends = torch.tensor([0, 60, len(x[0])], dtype=torch.int32, device=device)
	assert torch.equal(*(flash_attention_varlen(*x, ends, ends, 170, 170, True)
		for x in (x, [x.contiguous() for x in x])))
# queries without keys see none of their neighbours'
far = [x.detach().clone() for x in (k, v)]
for x in far:
	x[53], x[70] = -torch.inf, torch.inf
for causal, end in ((False, False), (True, False), (True, True)):
	inputs = [x.detach().requires_grad_() for x in (q, *far)]
	o = flash_attention_varlen(*inputs, *starts, 128, 101, causal,
		bottom_right=end)
	assert not o[37:102].any()
	few = torch.autograd.grad(o[37:102].sum(), inputs[0])[0]
	assert not few[37:102].any()
o = flash_attention_varlen(q, k, v, *starts, 128, 101)
starts[0][1] += 1
try:
	o.sum().backward()
except RuntimeError as error:
	assert "inplace" in str(error), error
else:
	raise AssertionError("sequences may change before the backward pass")
starts[0][1] -= 1
few = [x.detach().requires_grad_() for x in (q, k, v)]
settings = (*starts, 128, 101, 2, 0.)
torch.library.opcheck(operators.packed_attention, (*few, *settings))
few = [x.detach() for x in few]
o, l = operators.packed_attention(*few, *settings)
torch.library.opcheck(operators.packed_attention_backward, (torch.sin(o), *few, o,
	l, *settings, False))
def expect(text, *inputs):
	try:
		flash_attention_varlen(*inputs)
	except ValueError as error:
		assert text in str(error), error
	else:
		raise AssertionError("it was taken: " + text)
expect("int32", q, k, v, starts[0].long(), starts[1], 128, 101)
expect("numbers or lengths", q, k, v, starts[0][1:], starts[1], 128, 101)
expect("three dimensions", q[None], k[None], v[None], *starts, 128, 101)
expect("do not fit", q[:, :3], k, v, *starts, 128, 101)
if device == "cpu":
	for ends in ([0, 37, 36, 102, 230], [1, 37, 37, 102, 230],
			[0, 37, 37, 102, 229], [0, -1, 37, 102, 230]):
		expect("does not lead", q, k, v, torch.tensor(ends, dtype=torch.int32),
			starts[1], 128, 101)
	expect("does not lead", q, k, v, *starts, 127, 101)
END
}
runs_out() {
	python3 - <<'END'
import torch
from libsystems import flash_attention
x = torch.randn(1, 16, 16384, 64, device="cuda")       # 64 MiB
first = flash_attention(x[:, :1], x[:, :1], x[:, :1], True)
taken = torch.empty(torch.cuda.mem_get_info()[0] - (128 << 20),
	dtype=torch.uint8, device="cuda")
room = torch.empty_like(x)              # for O; split, Q, K, V are 3 x 64 MiB
del room
try:
	flash_attention(x, x, x, True)
except torch.OutOfMemoryError as error:
	assert "scratch" in str(error)
else:
	raise AssertionError("there was memory")
del taken
torch.cuda.empty_cache()
assert torch.equal(flash_attention(x, x, x, True)[:, :1], first)
END
}
check 'a program that loads the library goes on' loads_once
check 'fp64, fp32 and bf16 on the CPU' agrees cpu float64 1e-13 float32 2e-6 \
	bfloat16 1e-2
check 'shared heads, aligned masks' shares cpu float64 1e-13
check 'packed sequences' packs cpu float64 1e-13
callers attention cpu
if has_gpus 1; then
	check 'fp32, bf16 and fp16 on the GPU' agrees cuda float32 4e-6 \
		bfloat16 1e-2 float16 2e-3
	check 'shared heads in fp32 and bf16 on the GPU' shares cuda float32 4e-6 \
		bfloat16 1e-2
	check 'packed sequences in bf16 on the GPU' packs cuda bfloat16 1e-2
	check 'no memory for scratch' runs_out
	callers attention cuda
fi
exit $failed
