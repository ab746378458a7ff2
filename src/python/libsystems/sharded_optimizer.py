"""sharded_optimizer: optimizers of PyTorch, of which each rank has a share

optimizer = ShardedOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-3)
optimizer.step()                        # weights are equal on all ranks again

optimizer.consolidate_state_dict(to=0)  # all ranks
if rank == 0:
	torch.save(optimizer.state_dict(), path)
optimizer.load_state_dict(torch.load(path))     # all ranks, of any number

A parameter is updated by its owner: kinds that look at all, as LBFGS, differ
"""
import ctypes

import torch

from .ddp import broadcast, broadcast_object, call, described, join


def settings_of(group):
	"""all but its parameters"""
	return {key: value for key, value in group.items()
		if key not in ("params", "param_names")}


class ShardedOptimizer(torch.optim.Optimizer):
	def __init__(self, params, optimizer_cls, **settings):
		join()
		self.rank, ranks = described()[:2]
		self.loads = (ctypes.c_int64 * ranks)()
		self.kind, self.settings = optimizer_cls, settings
		self.inner, self.owners, self.inside = None, {}, []
		self.trained = set()
		self.consolidated = self.made = False
		one = optimizer_cls([torch.nn.Parameter(torch.empty(1, 1))], **settings)
		super().__init__(params, one.defaults)
		self.add_own(range(len(self.param_groups)))
		self.made = True

	def add_param_group(self, param_group):
		super().add_param_group(param_group)
		group = self.param_groups[-1]
		counts = [p.numel() * p.requires_grad for p in group["params"]]
		owners = (ctypes.c_int32 * len(counts))()
		if counts:
			call("owners", owners, (ctypes.c_int64 * len(counts))(*counts),
				len(counts), self.loads)
		self.owners |= zip(group["params"], owners)
		self.consolidated = False
		if self.made:
			self.add_own([len(self.param_groups) - 1])

	def add_own(self, indices):
		groups = []
		for index in indices:
			group = self.param_groups[index]
			own = [p for p in group["params"] if self.owners[p] == self.rank]
			if own:
				groups.append(settings_of(group) | {"params": own})
				self.inside.append(index)
		if self.inner is None and groups:
			self.inner = self.kind(groups, **self.settings)
		else:
			for group in groups:
				self.inner.add_param_group(group)

	def step(self, closure=None, **arguments):
		self.state.clear()
		self.consolidated, loss = False, None
		for index, inside in zip(self.inside, self.inner.param_groups
				if self.inner else ()):
			inside |= settings_of(self.param_groups[index])
		if self.inner is not None:
			loss = self.inner.step(closure, **arguments)
		elif closure is not None:
			with torch.enable_grad():
				loss = closure()
		for group in self.param_groups:
			for p in group["params"]:
				if p.requires_grad:
					self.trained.add(p)
				if p in self.trained:            # once; momentum may go on
					broadcast(p, self.owners[p])
		return loss

	def consolidate_state_dict(self, to=0):
		"""gathers the state of all parameters on rank `to`; all ranks call it"""
		self.state.clear()
		for p in self.parameters():
			own = self.owners[p] == self.rank and self.inner
			state = broadcast_object(self.inner.state.get(p) if own else None,
				self.owners[p], to)
			if state is not None:
				self.state[p] = state
		self.consolidated = self.rank == to

	def parameters(self):
		return [p for group in self.param_groups for p in group["params"]]

	def state_dict(self):
		"""of all parameters, as the class inside gives it; see
		consolidate_state_dict"""
		if not self.consolidated:
			raise RuntimeError("sharded_optimizer: this rank has only its share of "
				"the state. First all ranks call consolidate_state_dict(to=rank), "
				"after each step anew, and then this rank calls state_dict()")
		return super().state_dict()
	def load_state_dict(self, state_dict):
		"""on all ranks the dictionary of all parameters, from any number of ranks,
		or from the class inside alone"""
		super().load_state_dict({**state_dict, "state": {}})
		self.consolidated = False
		saved = [i for group in state_dict["param_groups"] for i in group["params"]]
		numbers = dict(zip(self.parameters(), saved))
		if self.inner:
			groups = [settings_of(self.param_groups[index])
				| {"params": [numbers[p] for p in inside["params"]]}
				for index, inside in zip(self.inside, self.inner.param_groups)]
			own = {i for group in groups for i in group["params"]}
			self.inner.load_state_dict({"param_groups": groups, "state": {
				i: x for i, x in state_dict["state"].items() if i in own}})
