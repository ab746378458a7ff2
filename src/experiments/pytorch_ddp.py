"""pytorch_ddp: times a step of the staff's Transformer in PyTorch, on each GPU
alone, and on all in a container: PyTorch's DDP, DDP with ZeroRedundancyOptimizer,
FSDP2, or ours"""
import argparse
import json
import math
import os
import socket
import statistics
import sys
import tempfile

from pytorch_peer import (SIZES, VOCAB, Clock, Transformer, attention, autocast,
	library_attention, mean_loss, nn, set_precision, shape_of, torch)
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

# build a module whose output is the loss
class LossOf(nn.Module):
	"""the loss of the model, of which blocks or all is compiled"""
	def __init__(self, args):
		super().__init__()
		best = args.impl == "best"
		self.model = Transformer(shape_of(args.size, args.context),
			library_attention if best else attention)
		self.top = self.finish
		if args.blocks:
			for block in self.model.layers:
				block.compile()
			self.top = torch.compile(self.finish)

	def finish(self, x, targets):
		return mean_loss(self.model.lm_head(self.model.ln_final(x)), targets)

	def forward(self, tokens, targets):
		x = self.model.token_embeddings(tokens)
		for block in self.model.layers:
			x = block(x)
		return self.top(x, targets)

# put a module into a container
def contained(module, args, rank):
	"""the module in the container that the arguments name"""
	low = torch.bfloat16 if args.precision == "bf16" else None
	if args.container == "libsystems-ddp":
		import libsystems
		return libsystems.DistributedDataParallel(module, args.bucket_mb)
	if args.container == "libsystems-fsdp":
		import libsystems
		return libsystems.FullyShardedDataParallel(module, low)
	if args.container == "fsdp2":
		from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
		types = MixedPrecisionPolicy(low, torch.float32)
		for block in module.model.layers:
			fully_shard(block, mp_policy=types)
		return fully_shard(module, mp_policy=types)
	return DistributedDataParallel(module, device_ids=[rank],
		bucket_cap_mb=args.bucket_mb)


def sharded_adamw(parameters, settings):
	from torch.distributed.optim import ZeroRedundancyOptimizer
	return ZeroRedundancyOptimizer(parameters, torch.optim.AdamW, **settings)


def whole(module):
	"""its parameters, gathered from all ranks"""
	if hasattr(module, "gather_full_params"):
		return module.gather_full_params().values()
	return [p.full_tensor() if hasattr(p, "full_tensor") else p
		for p in module.parameters()]

# time steps of one rank
def stepper(module, args, batch, container="none"):
	"""a function that trains for one step and returns the loss"""
	settings = dict(lr=1e-4, weight_decay=0.01)
	if args.impl == "best":
		settings["fused"] = True
	optimizer = sharded_adamw(module.parameters(), settings) \
		if container == "zero1" else torch.optim.AdamW(module.parameters(),
			**settings)
	finish = getattr(module, "finish_gradient_synchronization", lambda: None)
	run = module
	if args.impl != "eager" and not args.blocks:
		run = torch.compile(module)

	def step():
		optimizer.zero_grad()
		with autocast(args.precision):
			loss = run(*batch)
		loss.backward()
		finish()
		optimizer.step()
		return loss

	return step

# time steps that must lower the loss
def timed_steps(step, args, name):
	"""a clock of measured steps"""
	clock = Clock()
	first = step().item()
	for _ in range(args.warmup - 1):
		step()
	for _ in range(args.steps):
		last = clock.time(name, step)
	clock.loss = last.item()
	if math.isfinite(clock.loss) and not clock.loss < first:
		sys.exit(f"training did not lower the loss: {first}, then {clock.loss}")
	return clock

# take the slowest rank's median
def slowest(clock, name):
	"""columns: the median of the slowest rank, and its deviation"""
	ms = clock.ms[name]
	mine = (statistics.median(ms), statistics.stdev(ms) if len(ms) > 1 else 0.0)
	all_ranks = [None] * dist.get_world_size()
	dist.all_gather_object(all_ranks, mine)
	median, sd = max(all_ranks)
	return {f"{name}_ms": f"{median:.4f}", f"{name}_sd_ms": f"{sd:.4f}"}

# profile steps of one rank
def profile(step, path):
	"""three steps of rank 0, as a trace; all ranks take them"""
	kinds = torch.profiler.ProfilerActivity
	with torch.profiler.profile(activities=[kinds.CPU, kinds.CUDA]) as seen:
		for _ in range(3):
			with torch.profiler.record_function("step"):
				step()
		torch.cuda.synchronize()
	if dist.get_rank() == 0:
		seen.export_chrome_trace(path)
		print(path, seen.key_averages().table(sort_by="self_cuda_time_total",
			row_limit=30, max_name_column_width=70), sep="\n", file=sys.stderr)


def beside(path, name):
	root, kind = os.path.splitext(path)
	return root + "-" + name + kind

# sort the kernels of a step into classes
CLASSES = {"all-reduce": ("nccl",), "attention": ("flash", "fmha", "sdpa"),
	"matmul": ("gemm", "nvjet", "cutlass", "cublas")}
PROFILED = 3


def class_of(event):
	if event["cat"] != "kernel":
		return "copy"
	name = event["name"].lower()
	for kind, words in CLASSES.items():
		if any(word in name for word in words):
			return kind
	return "elementwise"

# find the time that spans cover
def covered(spans):
	"""us in which at least one of the spans, in order of their begins, runs"""
	total, end = 0, -math.inf
	for start, stop, _ in spans:
		total += max(0, stop - max(start, end))
		end = max(end, stop)
	return total


def profiled(step):
	"""the spans of a step's kernels and copies"""
	kinds = torch.profiler.ProfilerActivity
	with torch.profiler.profile(activities=[kinds.CUDA]) as seen:
		step()
		torch.cuda.synchronize()
	with tempfile.NamedTemporaryFile(suffix=".json") as file:
		seen.export_chrome_trace(file.name)
		with open(file.name) as trace:
			events = json.load(trace)["traceEvents"]
	return sorted((e["ts"], e["ts"] + e["dur"], class_of(e)) for e in events
		if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"))

# print the classes of a few steps
def print_classes(step, run):
	"""a line for each class, from a few steps of rank 0; all ranks take them"""
	us, calls = {}, {}
	for _ in range(PROFILED):
		spans = profiled(step)
		for start, stop, kind in spans:
			us[kind] = us.get(kind, 0) + stop - start
			calls[kind] = calls.get(kind, 0) + 1
		both, whole = covered(spans), max(s[1] for s in spans) - spans[0][0]
		alone = both - covered([s for s in spans if s[2] != "all-reduce"])
		for kind, time in dict(exposed=alone, idle=whole - both,
				step=whole).items():
			us[kind] = us.get(kind, 0) + time
	if dist.get_rank() == 0:
		for kind, time in us.items():
			print(f"run={run} class={kind} ms={time / PROFILED / 1e3:.4f}",
				f"calls={calls.get(kind, 0) / PROFILED:.1f} status=ok",
				flush=True)

# measure with one rank and with all
def fresh(args):
	torch.manual_seed(args.seed)
	with torch.device("cuda"):
		return LossOf(args)


def weights_of(module):
	with torch.no_grad():
		return sum(p.double().sum().item() for p in whole(module))

# measure one rank, then all
def measure(args, rank):
	set_precision(args.precision)
	torch._dynamo.config.optimize_ddp = not (args.whole or args.blocks)
	module = fresh(args)
	torch.manual_seed(args.seed + 1 + rank)
	batch = torch.randint(VOCAB, (2, args.batch, args.context), device="cuda")
	step = stepper(module, args, batch)
	row = slowest(timed_steps(step, args, "single"), "single")
	if args.profile:
		profile(step, beside(args.profile, "single"))
	if args.classes:
		print_classes(step, "alone")
	del step, module
	torch.cuda.empty_cache()
	torch.compiler.reset()
	module = fresh(args)
	module = contained(module, args, rank)
	step = stepper(module, args, batch, args.container)
	torch.cuda.reset_peak_memory_stats()
	clock = timed_steps(step, args, "step")
	row |= slowest(clock, "step")
	peak = torch.cuda.max_memory_allocated() / 2**20
	if args.profile:
		profile(step, args.profile)
	if args.classes:
		print_classes(step, "ddp")
	weights = [None] * args.ranks
	dist.all_gather_object(weights, weights_of(module))
	if len(set(map(str, weights))) > 1:
		sys.exit(f"the ranks' weights differ: {weights}")
	if not args.container.startswith("libsystems"):
		row["peak_MiB"] = f"{peak:.1f}"  # of which PyTorch knows all
	return row | {"status": "ok" if math.isfinite(clock.loss) else "diverged"}

# start the ranks
def rank_main(rank, args):
	torch.cuda.set_device(rank)
	dist.init_process_group("nccl", rank=rank, world_size=args.ranks)
	row = measure(args, rank)
	if rank == 0 and not args.classes:
		ratio = float(row["step_ms"]) / float(row["single_ms"])
		print(f"ratio={ratio:.6f}", *(f"{key}={value}" for key, value
			in row.items()), flush=True)
	dist.destroy_process_group()

# read the command line and spawn the ranks
def main():
	parser = argparse.ArgumentParser(prog="pytorch_ddp", description=__doc__)
	parser.add_argument("--size", choices=SIZES, default="small")
	parser.add_argument("--impl", choices=("eager", "compiled", "best"),
		default="eager")
	parser.add_argument("--container", default="ddp", choices=("ddp", "zero1",
		"fsdp2", "libsystems-ddp", "libsystems-fsdp"))
	for switch in ("blocks", "whole", "classes"):
		parser.add_argument("--" + switch, action="store_true")
	parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
	for name, default in dict(ranks=2, bucket_mb=25.0, context=512, batch=4,
			warmup=5, steps=10, seed=1, profile="").items():
		parser.add_argument("--" + name, type=type(default), default=default)
	args = parser.parse_args()
	if not 1 <= args.ranks <= torch.cuda.device_count():
		parser.error(f"PyTorch finds {torch.cuda.device_count()} GPUs")
	if args.warmup < 1 or args.steps < 1:
		parser.error("--warmup and --steps are at least 1")
	with socket.socket() as s:
		s.bind(("localhost", 0))
		port = s.getsockname()[1]
	os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port),
		"NCCL_NVLS_ENABLE": "0"}
	try:
		mp.spawn(rank_main, (args,), nprocs=args.ranks)
	except mp.ProcessRaisedException as error:
		if "out of memory" not in str(error):
			raise
		print("status=oom")


if __name__ == "__main__":
	main()
