"""sharded_optimizer: optimizers of PyTorch, of which each rank has a share

optimizer = ShardedOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-3)
optimizer.step()                        # weights are equal on all ranks again
"""
import ctypes

import torch

from .ddp import broadcast, call, described, join


class ShardedOptimizer(torch.optim.Optimizer):
	def __init__(self, params, optimizer_cls, **settings):
		join()
		self.rank, ranks = described()[:2]
		self.loads = (ctypes.c_int64 * ranks)()
		self.kind, self.settings = optimizer_cls, settings
		self.inner, self.owners, self.pairs = None, {}, []
		super().__init__(params, settings)

	def add_param_group(self, param_group):
		super().add_param_group(param_group)
		group = self.param_groups[-1]
		counts = [p.numel() * p.requires_grad for p in group["params"]]
		owners = (ctypes.c_int32 * len(counts))()
		call("owners", owners, (ctypes.c_int64 * len(counts))(*counts),
			len(counts), self.loads)
		self.owners |= zip(group["params"], owners)
		own = [p for p in group["params"] if self.owners[p] == self.rank]
		if own:
			self.add_own(group, own)

	def add_own(self, group, own):
		inside = {**group, "params": own}
		if self.inner is None:
			self.inner = self.kind([inside], **self.settings)
		else:
			self.inner.add_param_group(inside)
		self.pairs.append((group, self.inner.param_groups[-1]))

	def step(self, closure=None, **arguments):
		for group, inside in self.pairs:
			inside |= {k: v for k, v in group.items() if k != "params"}
		loss = None
		if self.inner is not None:
			loss = self.inner.step(closure, **arguments)
		elif closure is not None:
			with torch.enable_grad():
				loss = closure()
		for group in self.param_groups:
			for p in group["params"]:
				if p.requires_grad:
					broadcast(p, self.owners[p])
		return loss
