#!/usr/bin/env bash
# test_rmsnorm_torch.sh: RMSNorm in PyTorch, through the package
. tests/python/torch.sh
. tests/python/callers.sh
agrees() { # agrees DEVICE TYPE BOUND
	python3 - "$@" <<'END'
import sys
import torch
from libsystems import rms_norm
device, dtype = sys.argv[1], getattr(torch, sys.argv[2])
bound = float(sys.argv[3])
torch.manual_seed(2)
def plain(x, g, eps):
	return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * g
def near(name, a, b):
	error = ((a.double() - b).norm() / b.norm()).item()
	assert error < bound, (name, tuple(b.shape), error)
base = torch.randn(12, 7, 1024, device=device, dtype=dtype)
inputs = [base[..., :50], base[:, 0], base.transpose(0, 1), base[0, 0],
	base[:, :, 3:34], base[..., :1] + 1, base.flatten()[None, 5:10005]]
for x in inputs:
	for eps, dy in ((1e-5, torch.randn_like(x)), (1e-2, torch.randn(
			(), device=device).to(dtype).expand(x.shape))):
		x = x.detach().requires_grad_()
		g = (1 + 0.2 * torch.randn(x.shape[-1], device=device)).to(
			dtype).requires_grad_()
		exact = [t.detach().double().requires_grad_() for t in (x, g)]
		want = plain(*exact, eps)
		y = rms_norm(x, g, eps)
		assert y.dtype == x.dtype and y.shape == x.shape
		got = torch.autograd.grad(y, (x, g), dy)
		wanted = torch.autograd.grad(want, exact, dy.double())
		for name, a, b in zip(("y", "dx", "dg"), (y, *got), (want, *wanted)):
			if name != "dx" or x.shape[-1] > 1:    # of width 1: rounding alone
				near(name, a, b)
	if x.shape[-1] > 1:
		near("dx where dy is x", *(torch.autograd.grad(rms_norm(x, g), x, dy)[0]
			for dy in (x.detach(), x.detach().clone())))
END
}
check 'fp64 on the CPU' agrees cpu float64 1e-13
check 'fp32 on the CPU' agrees cpu float32 2e-6
check 'bf16 on the CPU' agrees cpu bfloat16 1e-2
callers rmsnorm cpu
if on_gpu; then
	check 'fp32 on the GPU' agrees cuda float32 2e-6
	check 'bf16 on the GPU' agrees cuda bfloat16 1e-2
	check 'fp16 on the GPU' agrees cuda float16 2e-3
	callers rmsnorm cuda
fi
exit $failed
