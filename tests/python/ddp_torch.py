"""ddp_torch: PyTorch's modules on several ranks, against the whole batch

ddp_torch.py CASE RANKS [DEVICE]
"""
import copy
import os
import socket
import sys

import torch
import torch.multiprocessing as mp
from torch import nn

from libsystems.ddp import DDP, DDPBucketed
from places import place_of
from raises import raises

BATCH = 24


# define toy modules
class Toy(nn.Module):
	def __init__(self):
		super().__init__()
		self.up, self.fixed = nn.Linear(10, 16), nn.Linear(16, 48)
		self.down = nn.Linear(48, 5, bias=False)
		self.fixed.bias.requires_grad = False
		self.unused = nn.Parameter(torch.randn(3), requires_grad=False)
		self.register_buffer("calls", torch.randint(100, (3,)))

	def forward(self, x):
		return self.down(torch.relu(self.fixed(torch.relu(self.up(x)))))


class Tied(nn.Module):
	def __init__(self):
		super().__init__()
		sizes = (10, 16), (16, 10), (10, 16), (16, 5)
		self.layers = nn.ModuleList(nn.Linear(*size) for size in sizes)
		self.layers[2].weight = self.layers[0].weight

	def forward(self, x):
		for layer in self.layers:
			x = torch.tanh(layer(x))
		return x


CONTAINERS = {"each": DDP} | {f"{mb} MB": lambda m, mb=mb: DDPBucketed(m, mb)
	for mb in (0.0016, 0.0001, 0.01, None)}

# train beside the whole batch
def five_steps(model, whole, rank, ranks, device):
	"""trains both; the weights of the model"""
	generator = torch.Generator().manual_seed(7)
	share = BATCH // ranks
	pairs = [(m, torch.optim.SGD(m.parameters(), lr=0.1)) for m in (model, whole)]
	for _ in range(5):
		x = torch.randn(BATCH, 10, generator=generator)
		y = torch.randn(BATCH, 5, generator=generator)
		mine = slice(rank * share, (rank + 1) * share)
		for (m, optimizer), rows in zip(pairs, (mine, slice(None))):
			optimizer.zero_grad()
			got, want = m(x[rows].to(device)), y[rows].to(device)
			loss = nn.functional.mse_loss(got, want)
			loss.backward()
			if m is model:
				model.finish_gradient_synchronization()
			optimizer.step()
		for a, b in zip(model.module.parameters(), whole.parameters()):
			assert torch.allclose(a, b, rtol=1e-5, atol=1e-7), (a - b).abs().max()
	return [p.detach().clone() for p in model.parameters()]

# train every container beside the whole batch
def case_trains(rank, ranks, device):
	for kind in (Toy, Tied):
		ends = {}
		for name, wrap in CONTAINERS.items():
			torch.manual_seed(0)
			whole = kind().to(device)                # as rank 0 begins
			torch.manual_seed(rank)
			model = wrap(kind().to(device))
			got, want = model.module.state_dict(), whole.state_dict()
			assert all(torch.equal(got[key], want[key]) for key in want), name
			ends[name] = five_steps(model, whole, rank, ranks, device)
			counts = {"each": len(model.shared), "None MB": 1}
			assert model.buckets() == counts.get(name, model.buckets()), name
			assert name != "0.0016 MB" or 1 < model.buckets() < counts["each"]
		for end in ends.values():
			assert ranks > 2 or all(map(torch.equal, end, ends["each"]))

# leave parameters out
def case_leaves_out(rank, ranks, device):
	for wrap in CONTAINERS.values():
		torch.manual_seed(1)
		layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3)).to(device)
		model = wrap(layers)
		before = copy.deepcopy(layers[2].weight)
		optimizer = torch.optim.AdamW(model.parameters(), lr=0.1,
			weight_decay=0.1)
		for last in (0, ranks - 1):
			optimizer.zero_grad()
			y = layers[0](torch.ones(2, 4, device=device))
			if rank == last:
				y = layers[1](y)
			y.sum().backward()
			mine = copy.deepcopy(layers[1].bias.grad)
			model.finish_gradient_synchronization()
			assert layers[2].weight.grad is None and layers[2].bias.grad is None
			want = torch.full((4,), 2.0 / ranks, device=device)
			assert torch.allclose(layers[1].bias.grad, want)
			assert (mine is not None) == (rank == last)
			optimizer.step()
		assert torch.equal(layers[2].weight, before)

# accumulate gradients
def case_accumulates(rank, ranks, device):
	for wrap in CONTAINERS.values():
		torch.manual_seed(2)
		model = wrap(Toy().to(device))
		x = torch.randn(3, ranks, 4, 10).to(device)      # passes, ranks
		for i in range(2):
			with model.no_sync():
				model(x[i, rank]).sum().backward()
		model(x[2, rank]).sum().backward()
		model.finish_gradient_synchronization()
		got = [p.grad.clone() for p in model.shared]
		whole = copy.deepcopy(model.module)
		whole.zero_grad()
		(whole(x.flatten(0, 2)).sum() / ranks).backward()
		want = [p.grad for p in whole.parameters() if p.requires_grad]
		for a, b in zip(got, want):
			assert torch.allclose(a, b, rtol=1e-4, atol=1e-5), (a - b).abs().max()

# give what is not supported
def case_refuses(rank, ranks, device):
	raises(TypeError, "float64 is not supported",
		lambda: DDP(nn.Linear(2, 2).double()))
	frozen = nn.Linear(2, 2).requires_grad_(False)
	raises(ValueError, "nothing to train", lambda: DDP(frozen))

# round a sum of bf16 once
def case_rounds_once(rank, ranks, device):
	model = DDPBucketed(nn.Linear(64, 64).bfloat16().to(device), 0.001)
	torch.manual_seed(3)
	gradients = torch.randn(ranks, 64, 64).bfloat16().to(device)
	(model.module.weight * gradients[rank]).sum().backward()
	model.finish_gradient_synchronization()
	want = (gradients.float().sum(0) / ranks).bfloat16()
	got = model.module.weight.grad
	assert got.dtype == torch.bfloat16
	assert ranks > 2 or torch.equal(got, want)
	assert torch.allclose(got.float(), want.float(), rtol=2 ** -7)

# queue a step while the GPU is busy
def case_waits_for_no_gpu(rank, ranks, device):
	model, x = DDPBucketed(Toy().to(device), 25), torch.ones(1, 10, device=device)
	for cycles in (0, 0, 4 * 10**9):         # a first use may wait: it loads code
		torch.cuda.synchronize()
		torch.cuda._sleep(cycles)
		model(x).sum().backward()
		model.finish_gradient_synchronization()
		end = torch.cuda.Event()
		end.record()
	assert not end.query()
	torch.cuda.synchronize()

# lose a rank
def case_loses_a_rank(rank, ranks, device):
	model = DDP(Toy().to(device))
	if rank == ranks - 1:
		os._exit(0)
	model(torch.ones(1, 10, device=device)).sum().backward()
	model.finish_gradient_synchronization()
	print("nothing was noticed")

# spawn the ranks of a case
def rank_main(rank, case, ranks, device):
	torch.set_num_threads(1)
	os.environ["RANK"] = str(rank)
	globals()["case_" + case](rank, ranks, place_of(rank, device))


def main():
	case, ranks, device = (sys.argv[1:] + ["cpu"])[:3]
	with socket.socket() as s:
		s.bind(("localhost", 0))
		os.environ["DDP_PORT"] = str(s.getsockname()[1])
	os.environ |= {"WORLD_SIZE": ranks, "MASTER_ADDR": "localhost"}
	mp.spawn(rank_main, (case, int(ranks), device), nprocs=int(ranks))


if __name__ == "__main__":
	main()
