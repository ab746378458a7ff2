"""pytorch_norms: times PyTorch's norms, forward, backward, and both"""
import argparse
import statistics
import sys
from importlib.util import find_spec

from pytorch_peer import (EPS, F, WARMUP, RMSNorm, columns_of, graph_of, nn,
	queued_ms, set_precision, torch)
from torch._functorch import config as compiling


# record or call a pass, and time it
def pass_ms(work, runs, stream):
	"""milliseconds of each run, and how they were timed"""
	with torch.cuda.stream(stream):
		for _ in range(WARMUP):
			work()
		stream.synchronize()
		replay = graph_of(work, stream)
		return queued_ms(replay or work, runs), "replay" if replay else "calls"


# time both passes of one of PyTorch's norms
def forms(width, dtype):
	"""implementation, norm, function, parameters: the eager one first"""
	eager, rms = RMSNorm(width), nn.RMSNorm(width, eps=EPS)
	layer = nn.LayerNorm(width, eps=EPS)
	gain = nn.Parameter((1 + 0.1 * torch.randn(width)).to(dtype))
	eager.weight = rms.weight = layer.weight = gain
	layer.bias = nn.Parameter(torch.zeros(width, dtype=dtype))
	both = [gain, layer.bias]
	return (("pytorch-eager", "rmsnorm", eager, [gain]),
		("pytorch-compiled", "rmsnorm", torch.compile(eager), [gain]),
		("pytorch-native", "rmsnorm", rms, [gain]),
		*((name, "rmsnorm", norm, [gain]) for name, norm in others(gain)),
		("pytorch-native", "layernorm", layer, both),
		("pytorch-compiled", "layernorm", torch.compile(lambda x: F.layer_norm(x,
			(width,), *both, EPS)), both))


def others(gain):
	"""RMSNorm of the libraries that are installed beside PyTorch"""
	if find_spec("quack"):
		from quack import rmsnorm
		yield "quack", lambda x: rmsnorm(x, gain, eps=EPS)
	if find_spec("liger_kernel"):
		from liger_kernel.transformers.functional import liger_rms_norm
		yield "liger", lambda x: liger_rms_norm(x, gain, EPS, in_place=False)

# compare a norm's gradients with the eager ones
def agree(norm, eager, x, gain, dy, centers):
	inputs = [x - x.mean(-1, keepdim=True) if centers else x, gain]
	wants = [eager(inputs[0])]
	wants += torch.autograd.grad(wants[0], inputs, dy)
	got = [norm(x)]
	got += torch.autograd.grad(got[0], [x, gain], dy)
	tolerance = 1e-3 if x.dtype == torch.float32 else 3e-2
	count = 1 if centers else 3          # other gradients, by the mean
	for a, b in zip(got[:count], wants):
		error = (a.double() - b.double()).norm() / b.double().norm()
		if not error < tolerance:
			sys.exit(f"pytorch_norms: a norm differs by {error.item()}")

# time the passes of a norm
def time_norm(norm, parameters, eager, x, dy, centers, stream, args):
	"""a norm's columns, each pass and both, as key=value"""
	with torch.cuda.stream(stream):
		agree(norm, eager, x, eager.weight, dy, centers)
		y = norm(x)
	leaves = [x, *parameters]
	passes = {"fwd": lambda: norm(x),
		"bwd": lambda: torch.autograd.grad(y, leaves, dy, retain_graph=True),
		"both": lambda: torch.autograd.grad(norm(x), leaves, dy)}
	row, ways = {}, set()
	for (key, work), arrays in zip(passes.items(), (2, 3, 5)):
		ms, way = pass_ms(work, args.repeats, stream)
		median = statistics.median(ms)
		ways.add(way)
		row |= {key + "_ms": f"{median:.6g}",
			key + "_sd_ms": f"{statistics.stdev(ms) if ms[1:] else 0:.6g}",
			key + "_fraction":
				f"{1e-6 * arrays * x.nbytes / median / args.copy:.6g}"}
	row |= {"timing": "calls" if "calls" in ways else "replay", "status": "ok"}
	return " ".join(f"{key}={value}" for key, value in row.items())

# time each norm's passes on one stream
def time_norms(args):
	torch.manual_seed(args.seed)
	set_precision("fp32")
	compiling.donated_buffer = False     # a backward pass runs many times
	dtype = torch.bfloat16 if args.precision == "bf16" else torch.float32
	stream = torch.cuda.Stream()
	with torch.device("cuda"), torch.cuda.stream(stream):
		x = torch.randn(args.rows, args.width, dtype=dtype).requires_grad_()
		dy = torch.randn(args.rows, args.width, dtype=dtype)
		norms = forms(args.width, dtype)
	for impl, name, *norm in norms:
		answer = columns_of(f"pytorch_norms: {impl}", lambda: time_norm(*norm,
			norms[0][2], x, dy, name == "layernorm", stream, args))
		print(f"impl={impl} norm={name}", answer, flush=True)


# read the command line of PyTorch's norms
def main():
	parser = argparse.ArgumentParser(prog="pytorch_norms", description=__doc__)
	for name, default in (("rows", 50000), ("width", 1024), ("repeats", 1000),
			("seed", 1), ("copy", 3000.0)):
		parser.add_argument("--" + name, type=type(default), default=default)
	parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
	args = parser.parse_args()
	if not torch.cuda.is_available():
		parser.error("PyTorch finds no GPU")
	time_norms(args)


if __name__ == "__main__":
	main()
