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
agrees() { # agrees DEVICE TYPE BOUND
	python3 - "$@" <<'END'
import sys
import torch
from libsystems import flash_attention
device, dtype = sys.argv[1], getattr(torch, sys.argv[2])
bound = float(sys.argv[3])
torch.manual_seed(1)
for n, m, causal in ((128, 128, True), (65, 65, True), (1, 1, False),
		(191, 77, False), (64, 1000, False), (300, 300, True)):
	leaves = [torch.randn(3, size, 2, 64, device=device, dtype=dtype,
		requires_grad=True) for size in (n, m, m)]
	def run(attend, leaves):
		Q, K, V = (x.transpose(1, 2) for x in leaves)
		O = attend(Q, K, V)
		g = torch.sin(torch.arange(O.numel(), device=device).float()).to(
			O.dtype).view(3, n, 2, 64).transpose(1, 2)
		return [O] + list(torch.autograd.grad(O, leaves, g))
	exact = [x.detach().double().requires_grad_() for x in leaves]
	ours = run(lambda q, k, v: flash_attention(q, k, v, causal), leaves)
	want = run(lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(
		q, k, v, is_causal=causal), exact)
	for a, b in zip(ours, want):
		size = max(b.norm(), want[0].norm() / 4)       # b may be 0
		error = (a.double() - b).norm() / size
		assert error < bound, (n, m, causal, error.item())
x = torch.randn(2, 3, 2, 65, 64, device=device, dtype=dtype)
each = [flash_attention(*[x[i, j, h]] * 3, True) for j in range(3)
	for i in range(2) for h in range(2)]               # (65, 64)
x = x.transpose(0, 1)                                  # its sizes do not merge
assert torch.equal(flash_attention(x, x, x, True).flatten(0, -3),
	torch.stack(each)), "five dimensions"
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
check 'fp64 on the CPU' agrees cpu float64 1e-13
check 'fp32 on the CPU' agrees cpu float32 2e-6
check 'bf16 on the CPU' agrees cpu bfloat16 1e-2
callers attention cpu
if on_gpu; then
	check 'fp32 on the GPU' agrees cuda float32 4e-6
	check 'bf16 on the GPU' agrees cuda bfloat16 1e-2
	check 'fp16 on the GPU' agrees cuda float16 2e-3
	check 'no memory for scratch' runs_out
	callers attention cuda
fi
exit $failed
