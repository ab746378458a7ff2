"""pytorch_collectives: times PyTorch's all-reduce by Gloo on ranks of a host"""
import argparse
import math
import os
import statistics
import sys
import tempfile
import time

try:
	import torch
	import torch.distributed as dist
	import torch.multiprocessing as processes
except ImportError as error:
	sys.exit(f"pytorch_collectives: PyTorch is not there: {error}")

# as in collective_case.c
WARMUP, MOST_BATCH, LEAST_RUNS = 2, 20, 3
BATCH_MS, LONG_MS, ROW_MS = 2, 20, 1500
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


# define a case of an all-reduce by Gloo
class Case:
	def __init__(self, args, rank, nbytes):
		self.args, self.rank = args, rank
		self.dtype = TYPES[args.dtype]
		self.n = nbytes // self.dtype.itemsize
		self.device = "cpu"
		if args.device == "cuda":
			self.device = f"cuda:{rank % torch.cuda.device_count()}"
		self.x = torch.empty(self.n, dtype=self.dtype, device=self.device)

	def integers(self, salt, rank):
		generator = torch.Generator().manual_seed(1000 * salt + rank)
		return torch.randint(-4, 4, (self.n,), dtype=torch.int8,
			generator=generator)

	def draw(self, salt):
		self.drawn = self.integers(salt, self.rank).to(self.dtype).to(self.device)

	def wait(self):
		if self.args.device == "cuda":
			torch.cuda.synchronize(self.device)

	def check(self, salt):
		self.draw(salt)
		self.x.copy_(self.drawn)
		dist.all_reduce(self.x)
		want = self.integers(salt, 0).to(torch.int16)
		for rank in range(1, self.args.ranks):
			want += self.integers(salt, rank)
		if not torch.equal(self.x.cpu().to(torch.int16), want):
			sys.exit(f"rank {self.rank}: sums of {self.n} elements are wrong")

	def batch_ms(self, led, batch):
		"""of one all-reduce on this rank"""
		self.x.copy_(self.drawn)
		self.wait()
		dist.barrier()
		if led:
			dist.all_reduce(self.x)
			self.wait()
		start = time.perf_counter()
		for _ in range(batch):
			dist.all_reduce(self.x)
		self.wait()
		return (time.perf_counter() - start) * 1e3 / batch


# measure a size on all ranks
def slowest(times):
	times = torch.tensor(times, dtype=torch.float64)
	dist.all_reduce(times, op=dist.ReduceOp.MAX)
	return times.tolist()


def measure(case, salt):
	args = case.args
	case.check(salt)
	for _ in range(WARMUP):
		ms = slowest([case.batch_ms(True, 1)])[0]
	batch = min(max(math.ceil(BATCH_MS / ms), 1), MOST_BATCH)
	runs = min(max(math.ceil(ROW_MS / (batch * ms)), LEAST_RUNS), args.runs)
	times = slowest([case.batch_ms(ms < LONG_MS, batch) for _ in range(runs)])
	case.check(salt + 1)
	nbytes = case.n * case.dtype.itemsize
	ms, GBps = statistics.median(times), nbytes / statistics.median(times) * 1e-6
	return dict(bytes=nbytes, time_ms=f"{ms:.5g}",
		time_sd_ms=f"{statistics.stdev(times) if runs > 1 else 0:.3g}",
		time_min_ms=f"{min(times):.5g}", algbw_GBps=f"{GBps:.5g}",
		busbw_GBps=f"{GBps * 2 * (args.ranks - 1) / args.ranks:.5g}",
		batch=batch, runs=runs, status="ok")


def run_rank(rank, args, meeting):
	torch.set_num_threads(max(1, (os.cpu_count() or 1) // args.ranks))
	dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank,
		world_size=args.ranks)
	for i, nbytes in enumerate(args.sizes):
		row = measure(Case(args, rank, nbytes), args.seed + 2 * i)
		if rank == 0:
			print(*(f"{key}={value}" for key, value in row.items()), flush=True)
	dist.destroy_process_group()


# read the command line of PyTorch's collectives
def main():
	parser = argparse.ArgumentParser(prog="pytorch_collectives",
		description=__doc__)
	parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
	parser.add_argument("--dtype", choices=TYPES, default="fp32")
	parser.add_argument("--ranks", type=int, default=2)
	parser.add_argument("--runs", type=int, default=20)
	parser.add_argument("--seed", type=int, default=1)
	parser.add_argument("--sizes", required=True,
		type=lambda text: [int(size) for size in text.split(",")])
	args = parser.parse_args()
	if args.device == "cuda" and not torch.cuda.is_available():
		parser.error("PyTorch finds no GPU")
	os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
	with tempfile.TemporaryDirectory() as folder:
		processes.spawn(run_rank, (args, folder + "/meeting"), args.ranks)


if __name__ == "__main__":
	main()
