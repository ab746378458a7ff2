"""containers_torch: our containers beside PyTorch's own, on small models

containers_torch.py FOLDER DEVICE RANKS ...    a job for each number of ranks;
FOLDER: where a job leaves the state of an optimizer for the next one
"""
import contextlib
import dataclasses
import os
import socket
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from libsystems.ddp import DDP, DDPBucketed
from libsystems.fsdp import FSDP
from libsystems.sharded_optimizer import ShardedOptimizer
from places import place_of, where


# define small models for all containers
class Block(nn.Module):
	"""a residual block that is used twice, checkpointed or not"""
	def __init__(self, kind=None, width=6):
		super().__init__()
		self.first, self.kind = nn.Linear(5, width), kind
		self.norm, self.up = nn.LayerNorm(width), nn.Linear(width, width)
		self.last = nn.Linear(width, 3, bias=False)

	def block(self, x):
		return x + torch.tanh(self.up(self.norm(x)))

	def forward(self, x):
		x = self.first(x)
		for _ in range(2):
			x = self.block(x) if self.kind is None else checkpoint(
				self.block, x, use_reentrant=self.kind == "reentrant")
		return self.last(x)

class Words(nn.Module):
	"""an embedding whose table may be that of the last layer"""
	def __init__(self, tied=False, sparse=False, bag=False):
		super().__init__()
		kind = nn.EmbeddingBag if bag else nn.Embedding
		self.words, self.norm = kind(9, 6, sparse=sparse), nn.LayerNorm(6)
		self.last = nn.Linear(6, 9)
		if tied:
			self.last.weight = self.words.weight

	def forward(self, x):
		x = (x.abs() * 3).long() % 9
		return self.last(self.norm(self.words(x)))

class Odd(nn.Module):
	"""what is frozen, unused, empty, a scalar, expanded, or hooked"""
	def __init__(self):
		super().__init__()
		self.first, self.frozen = nn.Linear(5, 6), nn.Linear(6, 6)
		self.unused, self.last = nn.Linear(2, 2), nn.Linear(6, 3)
		self.scale, self.empty = nn.Parameter(torch.ones(())), \
			nn.Parameter(torch.empty(0))
		self.frozen.requires_grad_(False)
		self.last.bias.requires_grad_(False)
		self.register_buffer("shift", torch.tensor(0.5))
		self.first.weight.register_hook(lambda g: 2 * g)
		self.last.register_forward_hook(lambda m, x, y: 1.5 * y)
		self.last.register_full_backward_hook(
			lambda m, gx, gy: tuple(0.5 * g for g in gx))

	def forward(self, x):
		x = self.frozen(torch.relu(self.first(x))) * self.scale
		return self.last(x) + self.shift + self.empty.sum()

def mlp():
	return nn.Sequential(nn.Linear(5, 7), nn.GELU(), nn.RMSNorm(7),
		nn.Linear(7, 3))

class Table(nn.Module):
	"""a sparse table alone"""
	def __init__(self):
		super().__init__()
		self.words = nn.Embedding(30, 4, sparse=True)

	def forward(self, x):
		return self.words((x.abs() * 9).long() % 30)

# train a model in a container, of ours or of PyTorch
class Side:
	"""a model in a container, and its optimizer"""
	def __init__(self, name, row):
		torch.manual_seed(1 if name == "whole" else 1 + dist.get_rank())
		self.inside = row.build()
		self.model = CONTAINERS[name](self.inside)
		self.optimizer = row.make(row.groups(self.model))

	def no_sync(self):
		if isinstance(self.model, FSDPModule):
			return unsynchronized(self.model)
		return getattr(self.model, "no_sync", contextlib.nullcontext)()

	def finish(self):
		getattr(self.model, "finish_gradient_synchronization", lambda: None)()

	def clip(self, most):
		if isinstance(self.model, FSDP):
			return self.model.clip_grad_norm_(most)
		return of_all(nn.utils.clip_grad_norm_(self.model.parameters(), most))

	def params(self):
		if isinstance(self.model, FSDP):
			return self.model.gather_full_params()
		return {name: of_all(p.detach())
			for name, p in self.inside.named_parameters()}

def of_all(x):
	return x.full_tensor() if isinstance(x, DTensor) else x


@contextlib.contextmanager
def unsynchronized(model):
	model.set_requires_gradient_sync(False)
	yield
	model.set_requires_gradient_sync(True)

def pytorch_ddp(model):
	unused = isinstance(model, Odd)
	return DistributedDataParallel(model, find_unused_parameters=unused)


def pytorch_fsdp(model):
	for x in (*model.parameters(), *model.buffers()):
		dist.broadcast(x.detach(), 0)
	mesh = init_device_mesh(where().type, (dist.get_world_size(),))
	return fully_shard(model, mesh=mesh)


CONTAINERS = {"whole": lambda model: model, "ddp": pytorch_ddp,
	"fsdp": pytorch_fsdp, "DDP": DDP,
	"DDPBucketed": lambda model: DDPBucketed(model, 1e-4), "FSDP": FSDP}

# take a step in one of several ways
def backward(side, way, inputs, share):
	"""passes over both inputs, or over the first"""
	def loss(x):
		y = side.model(x).float()
		return (y.square().mean() + 0.3 * y.sum()) * share
	a, b = inputs
	if way == "once":
		loss(a).backward()
	elif way == "adds":
		loss(a).backward(), loss(b).backward()
	elif way == "no_sync":
		with side.no_sync():
			loss(a).backward(), loss(b).backward()
		loss(b).backward()
	elif way == "losses":
		first, second = loss(a), loss(b)
		first.backward(), second.backward()
	else:
		both = loss(a)
		both.backward(retain_graph=True), both.backward()

def step(side, row, way, inputs):
	"""inputs: of ranks, of whose losses the mean is taken"""
	side.optimizer.zero_grad()
	for each in inputs:
		backward(side, way, each, 1 / len(inputs))
	side.finish()
	norm = side.clip(row.clip) if row.clip else torch.zeros(())
	side.optimizer.step()
	return {"norm": norm, **side.params()}

# list the models, and what is done with them
def adamw(params):
	return torch.optim.AdamW(params, lr=0.01, weight_decay=0.1)


def sgd(params):
	return torch.optim.SGD(params, lr=0.02, momentum=0.9)


def sparse_adam(params):
	return torch.optim.SparseAdam(list(params), lr=0.01)


def two_groups(model):
	params = list(model.parameters())
	return [{"params": params[::2], "lr": 0.02}, {"params": params[1::2]}]

def sparse_bag():
	return Words(sparse=True, bag=True)


SPARSE = sparse_bag, Table
WAYS = "once", "adds", "no_sync", "losses", "retain"


@dataclasses.dataclass
class Row:
	"""a model, the ways of a step, and PyTorch's containers that train it so"""
	name: str
	build: object
	ways: tuple = WAYS
	beside: tuple = ("ddp", "fsdp")
	make: object = adamw
	groups: object = nn.Module.parameters
	clip: float = 0
	ours: tuple = ("DDP", "FSDP")
	close: float = 1e-5

ROWS = [
	Row("layers and a norm", mlp, ours=("DDP", "DDPBucketed", "FSDP")),
	Row("clipped", mlp, ("once", "no_sync"), clip=0.1),
	Row("groups", mlp, ("once",), make=sgd, groups=two_groups),
	Row("used twice", Block),
	Row("checkpointed", lambda: Block("other"), ("adds", "losses")),
	Row("reentrant", lambda: Block("reentrant"), beside=("fsdp",)),
	Row("tied", lambda: Words(tied=True), ("adds", "retain"), groups=two_groups),
	Row("sparse", lambda: Words(sparse=True), ("adds",), (), sgd),
	Row("sparse bag", sparse_bag, ("no_sync",), ("ddp",), sgd),
	Row("table", Table, ("once", "adds"), ("ddp",), sparse_adam,
		ours=("DDP", "DDPBucketed")),
	Row("odd", Odd, beside=("ddp",), ours=("DDP", "DDPBucketed", "FSDP")),
	Row("fp16", lambda: mlp().half(), ("once", "no_sync"), make=sgd, close=4e-3),
	Row("bf16", lambda: Block().bfloat16(), ("adds",), make=sgd, close=3e-2),
]

# compare our containers with PyTorch's
def ddp_can(row, way):
	"""PyTorch's reduces the first of two passes alone, and over NCCL no
	sparse gradients"""
	sparse = row.build in SPARSE and where().type == "cuda"
	return way not in ("losses", "retain") and not sparse


def differences(row, rank, ranks):
	"""what our containers train otherwise than PyTorch's, and one process"""
	found = []
	for way in row.ways:
		theirs = ["whole", *(name for name in row.beside
			if name != "ddp" or ddp_can(row, way))]
		names = theirs + list(row.ours)
		sides = {name: Side(name, row) for name in names}
		generator = torch.Generator(where()).manual_seed(3)
		for turn in range(2):
			inputs = torch.randn(ranks, 2, 4, 5, generator=generator)
			inputs = inputs.to(next(sides["whole"].inside.parameters()).dtype)
			ends = {name: step(side, row, way,
				inputs if name == "whole" else inputs[rank:rank + 1])
				for name, side in sides.items()}
			found += [f"{row.name}, {way}, step {turn}, {ours} and {other}: {key}"
				for ours in row.ours for other in theirs for key in ends[other]
				if not torch.allclose(ends[ours][key], ends[other][key],
					rtol=10 * row.close, atol=row.close)]
	return found

# save the state of a sharded optimizer, and load it
KINDS = {"AdamW": (torch.optim.AdamW, {"lr": 0.1, "weight_decay": 0.1}),
	"SGD": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
	"Adagrad": (torch.optim.Adagrad, {"lr": 0.1})}


def steps_from(first, last, *sides):
	"""steps of models with their optimizers, all on one batch"""
	for turn in range(first, last):
		x = torch.randn(6, 5,
			generator=torch.Generator(where()).manual_seed(turn))
		for model, optimizer in sides:
			optimizer.zero_grad()
			(model(x) if turn % 2 else model[:2](x)).square().mean().backward()
			nn.utils.clip_grad_norm_(model.parameters(), 1)
			for group in optimizer.param_groups:
				group["lr"] *= 0.9
			optimizer.step()

def apart(a, b):
	"""do states or weights differ, in a bit?"""
	if isinstance(a, torch.Tensor):
		return not torch.equal(a.cpu(), b.cpu())
	if isinstance(a, dict):
		return a.keys() != b.keys() or any(apart(a[key], b[key]) for key in a)
	if isinstance(a, (list, tuple)):
		return len(a) != len(b) or any(map(apart, a, b))
	return a != b


def pair(kind, settings, make):
	torch.manual_seed(5)
	model = mlp()
	model[2].requires_grad_(False)
	groups = [{"params": list(model[0].parameters()), "lr": 0.05},
		{"params": list(model[1:].parameters())}]
	return model, make(groups, kind, **settings)


def plain(groups, kind, **settings):
	return kind(groups, **settings)

def refusal(optimizer):
	"""what is said instead of a state that this rank has not"""
	try:
		return optimizer.state_dict() and "nothing"
	except RuntimeError as error:
		return str(error)

def case_state(rank, ranks, folder):
	found = []
	for name, (kind, settings) in KINDS.items():
		path = os.path.join(folder, name)
		whole = pair(kind, settings, plain)
		ours = pair(kind, settings, ShardedOptimizer)
		theirs = pair(kind, settings, lambda groups, kind, **settings:
			ZeroRedundancyOptimizer(groups, kind, **settings))
		steps_from(0, 3, whole, theirs)
		if os.path.exists(path):
			weights, state = torch.load(path, map_location=where())
			ours[0].load_state_dict(weights)
			ours[1].load_state_dict(state)
		else:
			steps_from(0, 3, ours)
		said = [refusal(ours[1])]
		for _, optimizer in (ours, theirs):
			optimizer.consolidate_state_dict(to=ranks - 1)
		if rank == ranks - 1:
			want = whole[1].state_dict()
			found += [f"{name}: the state of {who}" for who, (_, optimizer)
				in (("ours", ours), ("PyTorch", theirs))
				if apart(optimizer.state_dict(), want)]
		else:
			said.append(refusal(ours[1]))
		ours[1].consolidate_state_dict()
		if rank == 0:
			torch.save((ours[0].state_dict(), ours[1].state_dict()), path)
			alone = pair(kind, settings, plain)
			alone[0].load_state_dict(ours[0].state_dict())
			alone[1].load_state_dict(ours[1].state_dict())
			steps_from(3, 6, alone)
		steps_from(3, 6, ours, whole)
		said.append(refusal(ours[1]))
		found += [f"{name}: weights of {who}" for who, model in
			(("ours", ours[0]), ("one alone", alone[0] if rank == 0 else whole[0]))
			if apart(model.state_dict(), whole[0].state_dict())]
		found += [f"{name}: {text}" for text in said
			if "consolidate_state_dict" not in text]
		dist.barrier()
	return found

# spawn a job for each number of ranks
def case_containers(rank, ranks, folder):
	return [line for row in ROWS for line in differences(row, rank, ranks)]


CASES = case_state, case_containers


def rank_main(rank, ranks, ports, folder, device, said):
	torch.set_num_threads(1)
	torch.set_default_device(place_of(rank, device))
	os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(ranks),
		"MASTER_ADDR": "localhost", "DDP_PORT": str(ports[0])}
	dist.init_process_group("gloo" if device == "cpu" else "cpu:gloo,cuda:nccl",
		f"tcp://localhost:{ports[1]}", rank=rank, world_size=ranks)
	found = [line for case in CASES for line in case(rank, ranks, folder)]
	said.put(found)
	dist.destroy_process_group()

def free_ports():
	with socket.socket() as a, socket.socket() as b:
		for s in (a, b):
			s.bind(("localhost", 0))
		return a.getsockname()[1], b.getsockname()[1]


def job(ranks, folder, device):
	"""differences that its ranks found; the modules are loaded only once"""
	context = mp.get_context("fork")
	said, ports = context.SimpleQueue(), free_ports()
	processes = [context.Process(target=rank_main, args=(rank, ranks, ports,
		folder, device, said)) for rank in range(ranks)]
	for process in processes:
		process.start()
	for process in processes:
		process.join()
	if any(process.exitcode for process in processes):
		return [f"exit statuses {[p.exitcode for p in processes]}"]
	return [line for process in processes for line in said.get()]

def main():
	folder, device, *jobs = sys.argv[1:]
	found = [f"{ranks} ranks: {line}" for ranks in map(int, jobs)
		for line in job(ranks, folder, device)]
	print("\n".join(found))
	sys.exit(bool(found))


if __name__ == "__main__":
	main()
