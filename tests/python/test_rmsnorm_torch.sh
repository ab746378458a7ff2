#!/usr/bin/env bash
# test_rmsnorm_torch.sh: RMSNorm in PyTorch, through libsystems.so
. tests/python/torch.sh
. tests/python/adapters.sh
agrees() { # agrees DEVICE TYPE BOUND
	python3 - "$@" <<'END'
import sys
import torch
from rmsnorm import RMSNorm, rmsnorm_backward_g, rmsnorm_backward_x
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
		y = RMSNorm.apply(x, g, eps)
		assert y.dtype == x.dtype and y.shape == x.shape
		got = torch.autograd.grad(y, (x, g), dy)
		wanted = torch.autograd.grad(want, exact, dy.double())
		for name, a, b in zip(("y", "dx", "dg"), (y, *got), (want, *wanted)):
			if name != "dx" or x.shape[-1] > 1:    # of width 1: rounding alone
				near(name, a, b)
	exact = [t.detach().double().requires_grad_() for t in (x, g)]
	dx, dg = torch.autograd.grad(plain(*exact, 1e-5), exact, dy.double())
	near("dg alone", rmsnorm_backward_g(dy, x, g), dg)
	if x.shape[-1] > 1:
		near("dx alone", rmsnorm_backward_x(dy, x, g), dx)
		near("dx where dy is x", rmsnorm_backward_x(x, x, g),
			rmsnorm_backward_x(x.clone(), x, g).double())
END
}
refuses() { # refuses ERROR CALL: of x, fp32 (2, 9, 16), and g (16)
	python3 - "$@" <<'END'
import sys
import torch
from rmsnorm import RMSNorm, gradients, rmsnorm_backward_x
x, g = torch.randn(2, 9, 16), torch.ones(16)
try:
	eval(sys.argv[2])
except (TypeError, ValueError) as error:
	sys.exit(sys.argv[1] not in str(error))
sys.exit("it was taken")
END
}
check 'fp32 on the CPU' agrees cpu float32 2e-6
check 'an unknown type' refuses 'float64 is not supported' \
	'RMSNorm.apply(x.double(), g.double())'
check 'types that differ' refuses 'types or devices' \
	'RMSNorm.apply(x, g.bfloat16())'
check 'bf16 on the CPU' refuses 'number format' \
	'RMSNorm.apply(x.bfloat16(), g)'
check 'another width' refuses 'do not fit' 'RMSNorm.apply(x, g[:8])'
check 'a gradient of another shape' refuses 'not like x' \
	'rmsnorm_backward_x(x[:1], x, g)'
check 'too few factors' refuses 'for each row' \
	'gradients(x, x, g, torch.ones(17))'
check 'factors of another type' refuses 'for each row' \
	'gradients(x, x, g, torch.ones(18).double())'
check 'an eps below zero' refuses 'eps is negative' 'RMSNorm.apply(x, g, -1.0)'
check 'an unknown version' refuses 'no such kernel' \
	'RMSNorm.apply(x, g, 1e-5, 99)'
adapters rmsnorm cpu
if python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then
	check 'fp32 on the GPU' agrees cuda float32 2e-6
	check 'bf16 on the GPU' agrees cuda bfloat16 1e-2
	check 'fp16 on the GPU' agrees cuda float16 2e-3
	adapters rmsnorm cuda
fi
exit $failed
