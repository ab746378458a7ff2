"""ddp: data parallelism of PyTorch's modules over libsystems.so

model = DDP(model)                      # or DDPBucketed(model, bucket_size_mb=25)
loss_of(model(x), y).backward()         # gradients are summed meanwhile
model.finish_gradient_synchronization() # and averaged over the ranks
optimizer.step()
"""
import atexit
import contextlib
import ctypes
import functools
import os
import threading

import torch

from .shared import path

OVERLAP, BUCKETED = 2, 3
TYPES = {torch.float32: 0, torch.bfloat16: 1}
UNBOUNDED = 1e9                          # megabytes
_one_at_a_time = threading.Lock()
_job = None

# call the library, or raise an error
@functools.cache
def library():
	shared = ctypes.CDLL(path())
	i32, i64, pointer = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p
	array = [i32, i32, pointer, i64, i32]
	shared.dist_status.restype = ctypes.c_char_p
	for name, types in (("open", [i32, i32, ctypes.c_char_p, i32, i32]),
			("broadcast", [pointer, i64, i32]),
			("reducer_new", [pointer, pointer, i32, i32, ctypes.c_double]),
			("reducer_buckets", [i32, pointer]), ("reducer_ready", array),
			("reducer_wait", [i32]), ("reducer_mean", array),
			("owners", [pointer, pointer, i32, pointer]),
			("range", [i64, pointer, pointer]),
			("gather", [pointer, pointer, i64, i32]),
			("reduce_scatter", [pointer, pointer, i64, i32]),
			("take", [i32, pointer, i64])):
		getattr(shared, "dist_" + name).argtypes = types
	return shared

def call(name, *arguments):
	with _one_at_a_time:
		status = getattr(library(), "dist_" + name)(*arguments)
	if status:
		text = library().dist_status(status).decode()
		raise RuntimeError(f"ddp: {name}: {text}")

# join the job
def described():
	"""rank, ranks, address, port"""
	group = torch.distributed
	if group.is_available() and group.is_initialized():
		rank, ranks = group.get_rank(), group.get_world_size()
	else:
		rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
	address = os.environ.get("MASTER_ADDR", "localhost")
	port = int(os.environ.get("MASTER_PORT", 29500)) + 1
	return rank, ranks, address.encode(), int(os.environ.get("DDP_PORT", port))

def join(limit_s=60):
	"""enters the job, once"""
	global _job
	job = described()
	if job != _job:
		leave()
		call("open", *job, limit_s)
		_job = job


@atexit.register
def leave():
	"""its containers are of no use any more"""
	global _job
	if _job is not None:
		_job = None
		call("close")

# copy a tensor from rank 0
def on_host(x):
	return x.detach().cpu().contiguous()


@torch.no_grad()
def broadcast(x, root=0):
	copy = on_host(x)
	call("broadcast", copy.data_ptr(), copy.nbytes, root)
	x.copy_(copy)

# wrap a module
class Container(torch.nn.Module):
	def __init__(self, module, kind, bucket_size_mb):
		super().__init__()
		self.module = module
		self.shared = [p for p in module.parameters() if p.requires_grad]
		for p in self.shared:
			if p.dtype not in TYPES:
				raise TypeError(f"ddp: {p.dtype} is not supported")
		if not self.shared:
			raise ValueError("ddp: the module has nothing to train")
		join()
		for x in (*module.parameters(), *module.buffers()):
			broadcast(x)
		counts = [len(self.shared)] + [p.numel() for p in self.shared]
		number = ctypes.c_int32()
		call("reducer_new", ctypes.byref(number),
			(ctypes.c_int64 * len(counts))(*counts), len(counts), kind,
			bucket_size_mb)
		self.reducer, self.given, self.syncing = number.value, set(), True
		for index, p in enumerate(self.shared, 1):
			p.register_post_accumulate_grad_hook(
				functools.partial(self.announce, index))

	def forward(self, *arguments, **named):
		return self.module(*arguments, **named)

	def buckets(self):
		"""collectives of a step"""
		number = ctypes.c_int32()
		call("reducer_buckets", self.reducer, ctypes.byref(number))
		return number.value

# announce gradients, and average them
	def announce(self, index, p):
		if self.syncing:
			self.give(index, p.grad)

	def give(self, index, x):
		copy = on_host(x)
		call("reducer_ready", self.reducer, index, copy.data_ptr(),
			copy.numel(), TYPES[copy.dtype])
		self.given.add(index)

	@torch.no_grad()
	def finish_gradient_synchronization(self):
		"""gradients are means over the ranks; after the backward pass"""
		there = torch.tensor([float(p.grad is not None) for p in self.shared])
		for index, p in enumerate(self.shared, 1):
			if p.grad is not None and index not in self.given:
				self.give(index, p.grad)
		self.give(0, there)
		call("reducer_wait", self.reducer)
		self.given.clear()
		self.take(0, there)
		for index, p in enumerate(self.shared, 1):
			if there[index - 1] > 0:
				if p.grad is None:
					p.grad = torch.empty_like(p)
				self.take(index, p.grad)

	def take(self, index, x):
		copy = torch.empty(x.shape, dtype=x.dtype)
		call("reducer_mean", self.reducer, index, copy.data_ptr(),
			copy.numel(), TYPES[copy.dtype])
		x.copy_(copy)

	@contextlib.contextmanager
	def no_sync(self):
		"""backward passes inside only accumulate"""
		self.syncing, before = False, self.syncing
		try:
			yield
		finally:
			self.syncing = before

# name the containers
class DDP(Container):
	"""sums each parameter's gradient as soon as it is there"""
	def __init__(self, module):
		super().__init__(module, OVERLAP, UNBOUNDED)


class DDPBucketed(Container):
	"""sums gradients in buckets of so many megabytes; None: in one"""
	def __init__(self, module, bucket_size_mb):
		super().__init__(module, BUCKETED,
			UNBOUNDED if bucket_size_mb is None else bucket_size_mb)
