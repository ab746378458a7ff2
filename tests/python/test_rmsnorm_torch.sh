#!/usr/bin/env bash
# test_rmsnorm_torch.sh: RMSNorm in PyTorch, through the package
. tests/python/torch.sh
. tests/python/callers.sh
agrees() { # agrees DEVICE TYPE BOUND [TYPE BOUND]...
	python3 - "$@" <<'END'
import sys
import torch
from gradients import gradients
from libsystems import rms_norm
device = sys.argv[1]
def plain(x, g, eps):
	return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * g
def compare(dtype, bound):
	torch.manual_seed(2)
	def near(name, a, b):
		error = ((a.double() - b).norm() / b.norm()).item()
		assert error < bound, (name, dtype, tuple(b.shape), error)
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
			got = gradients(y, (x, g), dy)
			wanted = gradients(want, exact, dy.double())
			for name, a, b in zip(("y", "dx", "dg"), (y, *got),
					(want, *wanted)):
				if name != "dx" or x.shape[-1] > 1:  # of width 1: rounding alone
					near(name, a, b)
		if x.shape[-1] > 1:
			near("dx where dy is x", *(gradients(rms_norm(x, g), [x],
				dy)[0] for dy in (x.detach(), x.detach().clone())))
for name, bound in zip(sys.argv[2::2], sys.argv[3::2]):
	compare(getattr(torch, name), float(bound))
END
}
check 'fp64, fp32 and bf16 on the CPU' agrees cpu float64 1e-13 float32 2e-6 \
	bfloat16 1e-2
callers rmsnorm cpu
if has_gpus 1; then
	check 'fp32, bf16 and fp16 on the GPU' agrees cuda float32 2e-6 \
		bfloat16 1e-2 float16 2e-3
	callers rmsnorm cuda
fi
exit $failed
