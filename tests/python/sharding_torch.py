"""sharding_torch: PyTorch's modules with shards, against whole ones

sharding_torch.py CASE RANKS [DEVICE]
"""
import copy
import gc
import os
import socket
import sys
import weakref

import torch
import torch.multiprocessing as mp
from torch import nn

from libsystems import fsdp
from libsystems.ddp import DDP
from libsystems.fsdp import FSDP
from libsystems.sharded_optimizer import ShardedOptimizer
from places import place_of, where
from raises import raises


# train with a sharded optimizer
def steps(model, whole, optimizer, reference):
	generator = torch.Generator(where()).manual_seed(3)
	for step in range(12):
		if step == 5:
			model[2].requires_grad_(True), whole[2].requires_grad_(True)
			for m, o in (model, optimizer), (whole, reference):
				o.add_param_group({"params": m[2].parameters(), "lr": 0.02})
		x = torch.randn(6, 4, generator=generator)
		for m, o in (model, optimizer), (whole, reference):
			o.zero_grad()
			y = m[0](x) if step % 4 == 1 else m[1](m[0](x))
			(y if step < 5 else m[2](y[:, :4])).square().mean().backward()
			for group in o.param_groups:
				group["lr"] *= 0.9
			o.step()
		for a, b in zip(model.parameters(), whole.parameters()):
			assert torch.equal(a, b), (step, (a - b).abs().max())

# compare a sharded optimizer with a whole one
def case_optimizer(rank, ranks):
	for kind, settings in ((torch.optim.AdamW, {"weight_decay": 0.1}),
			(torch.optim.SGD, {"momentum": 0.9})):
		torch.manual_seed(5)
		model = nn.ModuleList([nn.Linear(4, 9), nn.Linear(9, 5, bias=False),
			nn.Linear(4, 3)])
		model[2].requires_grad_(False)
		model[0].bias.requires_grad_(False)
		whole = copy.deepcopy(model)
		groups = [[{"params": m[0].parameters()},
			{"params": m[1].parameters(), "lr": 0.05}] for m in (model, whole)]
		optimizer = ShardedOptimizer(groups[0], kind, lr=0.1, **settings)
		steps(model, whole, optimizer, kind(groups[1], lr=0.1, **settings))
		own = [p for p, owner in optimizer.owners.items() if owner == rank
			and p.requires_grad]
		state = optimizer.inner.state if optimizer.inner else {}
		assert all(any(p is q for q in own) for p in state)
		assert ranks < 5 or len(own) < 2

# train with sharded weights
class Toy(nn.Module):
	def __init__(self):
		super().__init__()
		self.words, self.norm = nn.Embedding(11, 6), nn.LayerNorm(6)
		self.up, self.down = nn.Linear(6, 7), nn.Linear(7, 6, bias=False)
		self.again, self.one = nn.Linear(6, 7), nn.Linear(6, 1)
		self.again.weight = self.up.weight
		self.one.weight.requires_grad_(False)
		self.register_buffer("scale", torch.randn(1).abs())

	def forward(self, x):
		x = self.norm(self.words(x))
		for up in (self.up, self.again):
			x = x + self.down(torch.tanh(up(x)))
		return self.one(x).squeeze(-1) * self.scale

# train one model with shards and one whole
def low(dtype):
	return torch.autocast(where().type, enabled=dtype is not None, dtype=dtype)


def trained(rank, ranks, dtype, prefetch):
	torch.manual_seed(1)
	whole = Toy()
	torch.manual_seed(1 if rank == 0 else 50)
	model = FSDP(Toy(), dtype, prefetch)
	optimizers = [torch.optim.AdamW(m.parameters(), lr=0.01)
		for m in (model, whole)]
	generator = torch.Generator(where()).manual_seed(9)
	for _ in range(5):
		x = torch.randint(11, (12, 5), generator=generator)
		y = torch.randn(12, 5, generator=generator)
		mine = slice(rank * 12 // ranks, (rank + 1) * 12 // ranks)
		for m, o, rows in zip((model, whole), optimizers, (mine, slice(None))):
			o.zero_grad()
			with low(dtype):
				loss = nn.functional.mse_loss(m(x[rows]).float(), y[rows])
			loss.backward()
			if m is model:
				model.finish_gradient_synchronization()
			o.step()
		with torch.no_grad(), low(dtype):
			model(x)                             # nothing to go back to
	got, want = model.gather_full_params(), dict(whole.named_parameters())
	assert got.keys() == want.keys()
	close = {"rtol": 1e-4, "atol": 1e-5} if dtype is None else {"atol": 0.02}
	for name in want:
		assert torch.allclose(got[name], want[name], **close), name
	return got

# see that prefetch changes no bit
def case_fsdp(rank, ranks):
	for dtype in (None, torch.bfloat16):
		ends = [trained(rank, ranks, dtype, ahead) for ahead in (0, 1, 2)]
		for end in ends[1:]:
			assert all(torch.equal(end[name], ends[0][name]) for name in end)

# count whole weights
def case_memory(rank, ranks):
	for prefetch in (0, 1, 2):
		alive, most = set(), 0
		model = FSDP(nn.Sequential(*[nn.Linear(8, 8, bias=False)
			for _ in range(6)]), prefetch=prefetch)
		get = fsdp.Weight.get

		def counted(weight):
			nonlocal most
			if weight.whole is None:
				x = get(weight).untyped_storage()
				alive.add(id(x))
				weakref.finalize(x, alive.discard, id(x))
			most = max(most, len(alive))
			held = sum(w.whole is not None or w.gathering is not None
				for w in model.weights.values())
			assert held <= prefetch + 1, held
			return get(weight)
		fsdp.Weight.get = counted
		model(torch.ones(3, 8)).sum().backward()
		assert not any(w.whole is not None for w in model.weights.values())
		model.finish_gradient_synchronization()
		fsdp.Weight.get = get
		assert most == 1 and not alive, (most, alive)
		for p in model.parameters():
			begin, end = 64 * rank // ranks, 64 * (rank + 1) // ranks
			assert p.numel() == p.grad.numel() == end - begin

# see that a forward pass leaves nothing
def case_leaves_nothing(rank, ranks):
	gc.disable()
	model, seen = FSDP(nn.Sequential(nn.Linear(8, 8), nn.Tanh(),
		nn.Linear(8, 8))), []
	model.module[1].register_forward_hook(
		lambda layer, inputs, output: seen.append(weakref.ref(output)))
	model(torch.ones(3, 8))
	assert seen[0]() is None

# forget what zero_grad throws away
def case_forgets(rank, ranks):
	torch.manual_seed(4)
	whole = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2, bias=False))
	model = FSDP(copy.deepcopy(whole))
	for to_none in (True, False, True):
		for after in (False, True):
			few, many = torch.randn(3, 4), torch.randn(3, 4)
			model(few).square().sum().backward()
			with model.no_sync():
				model(few).sum().backward()
			if after:
				model.finish_gradient_synchronization()
			for m in model, whole:
				m.zero_grad(set_to_none=to_none)
				for x in many, few:                  # these add up
					m(x).square().sum().backward()
			model.finish_gradient_synchronization()
			for (p, weight), q in zip(model.weights.items(), (whole[0].weight,
					whole[2].weight)):
				assert torch.allclose(p.grad, q.grad.flatten()[weight.range],
					atol=1e-5), (to_none, after)

# go on with the momentum of what is frozen
def case_frozen(rank, ranks):
	torch.manual_seed(4)
	whole = nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 2))
	model = copy.deepcopy(whole)
	optimizers = (ShardedOptimizer([{"params": model.parameters()},
		{"params": []}], torch.optim.SGD, lr=0.1, momentum=0.9),
		torch.optim.SGD(whole.parameters(), lr=0.1, momentum=0.9))
	for step in range(4):
		x = torch.randn(3, 4)
		for m, o in zip((model, whole), optimizers):
			m[0].requires_grad_(step < 2)
			o.zero_grad(set_to_none=False)
			m(x).square().sum().backward()
			o.step()
		for a, b in zip(model.parameters(), whole.parameters()):
			assert torch.equal(a, b), step

# see what the layers of others see
class Embedding(nn.Module):
	"""has no weight of its own"""
	def forward(self, x):
		return x


def case_sees(rank, ranks):
	torch.manual_seed(4)
	whole = nn.Sequential(nn.Linear(4, 5), Embedding(), nn.Linear(5, 2))
	seen = [[], []]
	for sizes in seen:
		model = copy.deepcopy(whole)
		model[2].register_forward_pre_hook(lambda layer, inputs, sizes=sizes:
			sizes.append(layer.weight.shape))
		torch.nn.utils.weight_norm(model[0])
		model = FSDP(model) if sizes is seen[1] else model
		y = model(torch.ones(3, 4))
		y.sum().backward()
		sizes += [y, model.module[0].weight_g.grad if sizes is seen[1]
			else model[0].weight_g.grad]
	assert seen[0][0] == seen[1][0]
	assert all(torch.allclose(a, b) for a, b in zip(seen[0][1:], seen[1][1:]))

# refuse what cannot work
def changed_in_place():
	model = FSDP(nn.Sequential(nn.Linear(2, 2), nn.Sigmoid()))
	y = model(torch.ones(1, 2))
	(y.mul_(2)).sum().backward()


def unfrozen(wrap):
	module = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
	module[1].bias.requires_grad_(False)
	model = wrap(module)
	module[1].bias.requires_grad_(True)
	model(torch.ones(1, 2)).sum().backward()
	model.finish_gradient_synchronization()


def case_refuses(rank, ranks):
	raises(TypeError, "float64 is not supported",
		lambda: FSDP(nn.Linear(2, 2).double()))
	model = FSDP(nn.Sequential(nn.Linear(2, 2)))
	raises(ValueError, "sharded already", lambda: FSDP(model.module))
	raises(ValueError, "is empty", lambda: FSDP(nn.Linear(2, 0)))
	raises(RuntimeError, "wrap the copy", lambda: copy.deepcopy(model))
	raises(RuntimeError, "wrap the copy", lambda: copy.deepcopy(DDP(
		nn.Linear(2, 2))))
	raises(RuntimeError, "is it a copy", lambda: copy.deepcopy(model.module)(
		torch.ones(1, 2)))
	raises(RuntimeError, "inplace", changed_in_place)
	for wrap in DDP, FSDP:
		raises(RuntimeError, "1.bias was not trained", lambda: unfrozen(wrap))
	good = model.gather_full_params()
	for bad in {}, good | {"0.weight": torch.ones(4)}:
		raises(ValueError, "0.weight is not given as", lambda:
			model.load_full_params(bad))
	environment = dict(os.environ)
	del os.environ["RANK"]
	raises(RuntimeError, "there is no job", lambda: DDP(nn.Linear(2, 2)))
	os.environ |= environment

# wrap a module again
def case_again(rank, ranks):
	module = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
	for turn in range(3):
		model = DDP(module)
		gone = weakref.ref(model)
		x = model.module[0](torch.ones(1, 2))
		(x if rank else model.module[1](x)).sum().backward()
		model.finish_gradient_synchronization()
		module.zero_grad()
		del model
		gc.collect()
		assert gone() is None

# spawn the ranks of a case of sharding
def rank_main(rank, case, ranks, device):
	torch.set_num_threads(1)
	torch.set_default_device(place_of(rank, device))
	os.environ["RANK"] = str(rank)
	globals()["case_" + case](rank, ranks)


def main():
	case, ranks, device = (sys.argv[1:] + ["cpu"])[:3]
	with socket.socket() as s:
		s.bind(("localhost", 0))
		os.environ["DDP_PORT"] = str(s.getsockname()[1])
	os.environ |= {"WORLD_SIZE": ranks, "MASTER_ADDR": "localhost"}
	mp.spawn(rank_main, (case, int(ranks), device), nprocs=int(ranks))


if __name__ == "__main__":
	main()
