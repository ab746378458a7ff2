"""ddp: data parallelism of PyTorch's modules over libsystems.so

model = DDP(model)                      # or DDPBucketed(model, bucket_size_mb=25)
loss_of(model(x), y).backward()         # gradients are summed meanwhile
model.finish_gradient_synchronization() # and averaged over the ranks
optimizer.step()

Gradients of several backward passes before finish_gradient_synchronization() add
up; all but the last belong into `with model.no_sync():`, or they are sent twice
"""
import atexit
import contextlib
import ctypes
import functools
import io
import os
import threading
import weakref

import torch

from .shared import path

OVERLAP, BUCKETED = 2, 3
TYPES = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}
UNBOUNDED = 1e9                          # megabytes
HOST = torch.device("cpu")
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
			("reducer_means", [i32, i32, pointer, pointer, pointer]),
			("gather", [pointer, pointer, i64, i32]),
			("gather_in_place", [pointer, pointer, i64, i32]),
			("reduce_scatter", [pointer, pointer, i64, i32]),
			("take", [i32, pointer, i64]), ("place", [i32, pointer])):
		getattr(shared, "dist_" + name).argtypes = types
	return shared

def call(name, *arguments, at=HOST):
	"""calls dist_name for arrays in the memory of a device"""
	function = getattr(library(), "dist_" + name)
	with _one_at_a_time:
		try:
			status = enter(at) or function(*arguments)
		finally:
			leave_gpu(at)
	if status:
		text = library().dist_status(status).decode()
		raise RuntimeError(f"ddp: {name}: {text}")


def enter(at):
	"""the status of telling the library where arrays lie"""
	if at is HOST:
		return 0
	stream = torch._C._cuda_getCurrentRawStream(at.index)
	return library().dist_place(at.index, stream)


def leave_gpu(at):
	if at is not HOST:
		library().dist_place(-1, None)

def home_of(tensors):
	"""where collectives of these tensors are done: on their GPU, or the host"""
	devices = {x.device for x in tensors}
	device = devices.pop()
	if devices or device.type != "cuda":
		return HOST
	with _one_at_a_time:
		status = enter(device)
		leave_gpu(device)
	return HOST if status else device

# join the job
def described():
	"""rank, ranks, address, port"""
	group = torch.distributed
	if group.is_available() and group.is_initialized():
		rank, ranks = group.get_rank(), group.get_world_size()
	elif {"RANK", "WORLD_SIZE"} <= os.environ.keys():
		rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
	else:
		raise RuntimeError("ddp: there is no job; torchrun starts one, or "
			"init_process_group, or RANK and WORLD_SIZE say which rank this is")
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
def packed(x, home):
	"""x in one piece, in the memory of that device"""
	if x.device != home or not x.is_contiguous():
		x = x.detach().to(home).contiguous()
	return x


@torch.no_grad()
def broadcast(x, root=0):
	home = home_of([x])
	copy = packed(x, home)
	call("broadcast", copy.data_ptr(), copy.nbytes, root, at=home)
	first = tuple(slice(None if step else 1) for step in x.stride())
	x[first].copy_(copy[first])

def broadcast_object(x, root, to):
	"""root's object on rank `to`, its tensors on the host; elsewhere None"""
	rank, saved = described()[0], io.BytesIO()
	if rank == root:
		torch.save(x, saved)
	size = torch.tensor([saved.tell()], device=HOST)
	broadcast(size, root)
	content = bytearray(saved.getvalue()) if rank == root \
		else bytearray(size.item())
	broadcast(torch.frombuffer(content, dtype=torch.uint8), root)
	if rank == to:
		return torch.load(io.BytesIO(content), map_location="cpu",
			weights_only=False)

# sum arrays over the ranks
class Reducer:
	"""sums of arrays of so many elements each, in the memory of a device"""
	def __init__(self, counts, kind, bucket_size_mb, home):
		counts, number = list(counts), ctypes.c_int32()
		call("reducer_new", ctypes.byref(number),
			(ctypes.c_int64 * len(counts))(*counts), len(counts), kind,
			bucket_size_mb, at=home)
		self.number, self.home = number.value, home
		self.types = {torch.float32} if home == HOST \
			else {torch.float32, torch.bfloat16}

	def buckets(self):
		found = ctypes.c_int32()
		call("reducer_buckets", self.number, ctypes.byref(found))
		return found.value

	def give(self, index, x):
		x = packed(x if x.dtype in self.types else x.float(), self.home)
		call("reducer_ready", self.number, index, x.data_ptr(), x.numel(),
			TYPES[x.dtype], at=self.home)

	def wait(self):
		call("reducer_wait", self.number, at=self.home)

	def take(self, wanted):
		"""wanted: arrays by their indices, which become means"""
		n, i32 = len(wanted), ctypes.c_int32
		means = [x if x.dtype in self.types and x.device == self.home
			and x.is_contiguous() else torch.empty(x.shape, device=self.home)
			for x in wanted.values()]
		call("reducer_means", self.number, n, (i32 * n)(*wanted),
			(ctypes.c_void_p * n)(*(x.data_ptr() for x in means)),
			(i32 * n)(*(TYPES[x.dtype] for x in means)), at=self.home)
		torch.autograd.graph.increment_version(means)
		for x, mean in zip(wanted.values(), means):
			if x is not mean:
				x.copy_(mean)

# wrap a module
def sparse_tables(module):
	"""weights of embeddings that ask for sparse gradients"""
	kinds = torch.nn.Embedding, torch.nn.EmbeddingBag
	return list(dict.fromkeys(layer.weight for layer in module.modules()
		if isinstance(layer, kinds) and layer.sparse
		and layer.weight.requires_grad))


def refuse_strangers(module, known):
	"""gradients of what was not trained, or not there, when it was wrapped"""
	for name, p in module.named_parameters():
		if p.requires_grad and p.grad is not None and p not in known:
			raise RuntimeError(f"ddp: {name} was not trained, or not there, when "
				"the module was wrapped; wrap it anew")


def announce_to(container, index, p):
	"""to a container that may be gone"""
	container = container()
	if container is not None:
		container.announce(index, p)


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
		self.tables, self.given = sparse_tables(module), {}
		join()
		for x in (*module.parameters(), *module.buffers()):
			broadcast(x)
		self.home, self.syncing = home_of(self.shared), True
		self.reducer = Reducer(map(torch.numel, self.shared), kind, bucket_size_mb,
			self.home)
		for index, p in enumerate(self.shared):
			p.register_post_accumulate_grad_hook(
				functools.partial(announce_to, weakref.ref(self), index))
		self.flag_sums = Reducer([self.flags().numel()], BUCKETED, UNBOUNDED, HOST)

	def forward(self, *arguments, **named):
		return self.module(*arguments, **named)

	def __deepcopy__(self, memo):
		raise RuntimeError("ddp: copy the module, and wrap the copy")

	def buckets(self):
		"""collectives of a step"""
		return self.reducer.buckets()

# announce gradients, and average them
	def announce(self, index, p):
		if self.syncing and index not in self.given:
			self.give(index, p.grad)

	def give(self, index, x):
		self.given[index] = x, x._version
		self.reducer.give(index, x.to_dense() if x.is_sparse else x)

	def changed(self):
		"""is a gradient that was sent not the parameter's any more?"""
		return any(self.shared[index].grad is not x or x._version != version
			for index, (x, version) in self.given.items())

	def flags(self):
		"""was a gradient changed after it was sent? which are there?"""
		facts = [self.changed(), *(p.grad is not None for p in self.shared)]
		return torch.cat([torch.tensor(facts, device=HOST).float(),
			*self.row_flags()])

	@torch.no_grad()
	def finish_gradient_synchronization(self):
		"""gradients are means over the ranks; after the backward passes"""
		refuse_strangers(self.module, set(self.shared))
		self.send_rest()
		flags, n = self.summed(self.flags()), 1 + len(self.shared)
		self.given.clear()
		if flags[0] > 0:
			self.send_rest()
			self.given.clear()
		self.take_gradients(flags[1:n].tolist())
		self.make_sparse(flags[n:])

	def send_rest(self):
		for index, p in enumerate(self.shared):
			if p.grad is not None and index not in self.given:
				self.give(index, p.grad)
		self.reducer.wait()

	def row_flags(self):
		"""of each table: is its gradient there whole, by rows; which rows?"""
		all_flags = []
		for p in self.tables:
			flags = torch.zeros(2 + len(p), device=HOST)
			if p.grad is not None:
				flags[int(p.grad.is_sparse)] = 1
				if p.grad.is_sparse:
					flags[2:][p.grad.coalesce().indices()[0].cpu()] = 1
			all_flags.append(flags)
		return all_flags

	def make_sparse(self, flags):
		"""gradients that are there by rows only, from sums of row_flags"""
		for p in self.tables:
			whole, by_rows = flags[:2].tolist()
			there = flags[2:2 + len(p)].nonzero().T.to(p.device)
			flags = flags[2 + len(p):]
			if by_rows and not whole:
				with torch.sparse.check_sparse_tensor_invariants(False):
					p.grad = torch.sparse_coo_tensor(there, p.grad[there[0]],
						p.shape, is_coalesced=True)

	def summed(self, flags):
		self.flag_sums.give(0, flags)
		self.flag_sums.wait()
		self.flag_sums.take({0: flags})
		return flags

	def take_gradients(self, there):
		"""means of those that are there on any rank"""
		wanted = {index: p for index, p in enumerate(self.shared) if there[index]}
		for p in wanted.values():
			if p.grad is None or p.grad.is_sparse:
				p.grad = torch.empty_like(p)
		self.reducer.take({index: p.grad for index, p in wanted.items()})

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
