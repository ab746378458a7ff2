#!/usr/bin/env bash
# test_flash_torch.sh: attention in PyTorch, through libsystems.so
. tests/base/check.sh
. tests/python/adapters.sh
command -v python3 >/dev/null || exit 77
export LIBSYSTEMS=$PWD/${BUILD:-build}/libsystems.so
[ -f "$LIBSYSTEMS" ] || exit 77         # there is none with SANITIZE=1
loads_once() {
	local said
	said=$(python3 -c "import ctypes, os
print('once')
ctypes.CDLL(os.environ['LIBSYSTEMS'])")
	[ "$said" = once ]
}
check 'a program that loads the library goes on' loads_once
python3 -c 'import torch' 2>/dev/null || exit $failed
agrees() { # agrees DEVICE TYPE BOUND
	PYTHONPATH=src/python python3 - "$@" <<'END'
import sys
import torch
from flash_attention import FlashAttention
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
	ours = run(lambda q, k, v: FlashAttention.apply(q, k, v, causal), leaves)
	want = run(lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(
		q, k, v, is_causal=causal), exact)
	for a, b in zip(ours, want):
		size = max(b.norm(), want[0].norm() / 4)       # b may be 0
		error = (a.double() - b).norm() / size
		assert error < bound, (n, m, causal, error.item())
x = torch.randn(2, 3, 2, 65, 64, device=device, dtype=dtype)
each = [FlashAttention.apply(*[x[i, j, h]] * 3, True) for j in range(3)
	for i in range(2) for h in range(2)]               # (65, 64)
x = x.transpose(0, 1)                                  # its sizes do not merge
assert torch.equal(FlashAttention.apply(x, x, x, True).flatten(0, -3),
	torch.stack(each)), "five dimensions"
END
}
refuses() { # refuses ERROR TENSORS: Q, K, V made of x, fp32 (2, 9, 16)
	PYTHONPATH=src/python python3 - "$@" <<'END'
import sys
import torch
from flash_attention import FlashAttention
x = torch.randn(2, 9, 16)
try:
	FlashAttention.apply(*eval(sys.argv[2]))
except (TypeError, ValueError) as error:
	sys.exit(sys.argv[1] not in str(error))
sys.exit("it was taken")
END
}
runs_out() {
	PYTHONPATH=src/python python3 - <<'END'
import torch
from flash_attention import FlashAttention
x = torch.randn(1, 16, 16384, 64, device="cuda")       # 64 MiB
first = FlashAttention.apply(x[:, :1], x[:, :1], x[:, :1], True)
taken = torch.empty(torch.cuda.mem_get_info()[0] - (128 << 20),
	dtype=torch.uint8, device="cuda")
room = torch.empty_like(x)              # for O; split, Q, K, V are 3 x 64 MiB
del room
try:
	FlashAttention.apply(x, x, x, True)
except torch.OutOfMemoryError as error:
	assert "scratch" in str(error)
else:
	raise AssertionError("there was memory")
del taken
torch.cuda.empty_cache()
assert torch.equal(FlashAttention.apply(x, x, x, True)[:, :1], first)
END
}
check 'fp32 on the CPU' agrees cpu float32 2e-6
check 'an unknown type' refuses 'float64 is not supported' '[x.double()] * 3'
check 'types that differ' refuses 'types or devices' 'x, x.bfloat16(), x'
check 'another place' refuses 'types or devices' 'x, x.to("meta"), x'
check 'values that are short' refuses 'do not fit' 'x, x, x[:, :8]'
check 'another head size' refuses 'do not fit' 'x, x[..., :8], x[..., :8]'
check 'another batch' refuses 'do not fit' 'x, x[:1], x[:1]'
check 'an unknown device' refuses 'meta is not supported' '[x.to("meta")] * 3'
adapters attention cpu
if python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then
	check 'fp32 on the GPU' agrees cuda float32 4e-6
	check 'bf16 on the GPU' agrees cuda bfloat16 1e-2
	check 'fp16 on the GPU' agrees cuda float16 2e-3
	check 'no memory for scratch' runs_out
	adapters attention cuda
fi
exit $failed
