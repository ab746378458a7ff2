"""python -m libsystems: which build is this, and does it compute?"""
import sys

import torch
from torch.nn import functional as F

import libsystems
from libsystems.operators import IN_CPP
from libsystems.shared import HERE, library

# measure how far results and gradients are off
def off(ours, theirs, inputs):
	"""the largest relative error of ours and its gradients"""
	def run(function, inputs):
		inputs = [x.detach().requires_grad_() for x in inputs]
		result = function(*inputs)
		weights = torch.cos(torch.arange(result.numel(), dtype=torch.float64))
		result.backward(weights.view(result.shape).to(result))
		return [result, *(x.grad for x in inputs)]
	pairs = zip(run(ours, inputs), run(theirs, [x.double() for x in inputs]))
	return max(((a.double() - b).norm() / b.norm()).item() for a, b in pairs)

# check the build on a device
def check(device, dtype, bound):
	torch.manual_seed(1)
	def some(*shape):
		return torch.randn(shape, device=device).to(dtype)
	errors = {"attention": off(
		lambda *x: libsystems.flash_attention(*x, causal=True),
		lambda *x: F.scaled_dot_product_attention(*x, is_causal=True),
		[some(2, 2, 65, 64) for _ in range(3)]), "RMSNorm": off(
		libsystems.rms_norm, lambda x, g: F.rms_norm(x, g.shape, g, 1e-5),
		[some(33, 64), some(64)])}
	right = all(error < bound for error in errors.values())
	print(f"check      {str(dtype)[6:]} on {device}: " + ", ".join(
		f"{name} {error:.1e}" for name, error in errors.items()),
		"" if right else f"NOT OK, more than {bound:.0e}")
	return right

# say which build this is
def main(arguments):
	if arguments == ["--pkg-config"]:
		print(HERE)
		return 0
	if arguments:
		print("usage: python -m libsystems [--pkg-config]", file=sys.stderr)
		return 2
	gpus = library().libsystems_gpus().decode()
	print("libsystems", libsystems.__version__)
	print("compiler  ", library().libsystems_compiler().decode())
	print("GPUs      ", gpus or "none; compiled for the CPU alone")
	print("PyTorch   ", torch.__version__)
	print("gradients ", "in C++" if IN_CPP else "in Python; install the package "
		"again for those in C++")
	right = [check("cpu", torch.float64, 1e-12),
		check("cpu", torch.float32, 1e-5)]
	if gpus and torch.cuda.is_available():
		right += [check("cuda", torch.float32, 1e-5),
			check("cuda", torch.bfloat16, 2e-2)]
	return 0 if all(right) else 1


sys.exit(main(sys.argv[1:]))
