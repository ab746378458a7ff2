"""fsdp: PyTorch's modules, of whose weights each rank keeps a range

model = FSDP(model, compute_dtype=torch.bfloat16)
loss_of(model(x), y).backward()          # gathers, and sums gradients
model.finish_gradient_synchronization()  # gradients are means over the ranks
optimizer.step()                         # of ranges, in fp32

Gradients of several backward passes before finish_gradient_synchronization() add
up. Passes in `with model.no_sync():` send nothing, and keep whole gradients.
All ranks run the same layers in the same order
"""
import contextlib
import ctypes

import torch

from .ddp import (HOST, DDPBucketed, broadcast, call, described, home_of, join,
	packed)

SHARDED = "Linear", "Embedding"          # classes of layers, whosoever's
TYPES = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}
under_way = {}                           # arrays, by the numbers of requests


# keep a range of a weight
class Weight:
	"""a parameter that holds a range, and at times the whole beside it"""
	def __init__(self, p, compute_dtype):
		self.p, self.shape, self.count = p, p.shape, p.numel()
		self.dtype = compute_dtype or p.dtype
		for dtype in (self.dtype, p.dtype):
			if dtype not in TYPES:
				raise TypeError(f"fsdp: {dtype} is not supported")
		begin, end = ctypes.c_int64(), ctypes.c_int64()
		call("range", self.count, ctypes.byref(begin), ctypes.byref(end))
		broadcast(p)
		self.range = slice(begin.value, end.value)
		p.data = p.detach().flatten()[self.range].clone()
		self.home = home_of([p])
		self.whole = self.gathering = self.gradient = self.kept = None
		self.scattering = []
		self.leaf = p.new_empty(0).requires_grad_()

# gather a weight's range, and take the whole
	def start(self, dtype=None):
		"""begins to gather it, in that or its own type"""
		number, dtype = ctypes.c_int32(), dtype or self.dtype
		whole = torch.empty(self.count, dtype=dtype, device=self.home)
		whole[self.range].copy_(self.p.detach())
		call("gather_in_place", ctypes.byref(number), whole.data_ptr(),
			self.count, TYPES[dtype], at=self.home)
		under_way[number.value] = whole
		return number.value

	def end(self, number):
		whole = under_way.pop(number)
		call("take", number, whole.data_ptr(), self.count, at=self.home)
		return whole.view(self.shape).to(self.p.device)

	def fetch(self):
		if self.whole is None and self.gathering is None:
			self.gathering = self.start()

	def get(self):
		self.fetch()
		if self.whole is None:
			self.whole, self.gathering = self.end(self.gathering), None
		return self.whole

	def drop(self):
		if self.gathering is not None:
			self.get()
		self.whole = None

# reduce a weight's gradient
	def add(self, gradient):
		"""of one of its uses"""
		gradient = gradient.to_dense() if gradient.is_sparse else gradient
		self.gradient = gradient if self.gradient is None \
			else self.gradient + gradient

	def pass_ended(self, syncing):
		"""the gradient of a backward pass is complete"""
		for hook in (self.p._backward_hooks or {}).values():
			changed = hook(self.gradient)
			self.gradient = self.gradient if changed is None else changed
		self.kept = self.gradient if self.kept is None \
			else self.kept + self.gradient
		self.gradient = None
		if syncing:
			self.scatter()
		else:
			self.kept = self.kept.to(self.p.dtype)
		self.drop()

	def scatter(self):
		number, x = ctypes.c_int32(), packed(self.kept, self.home)
		x = x.float() if x.dtype == torch.float16 else x
		call("reduce_scatter", ctypes.byref(number), x.data_ptr(), self.count,
			TYPES[x.dtype], at=self.home)
		self.scattering.append(number.value)
		self.kept = None

	def finish(self):
		self.drop()
		if self.kept is not None:
			self.scatter()
		if self.scattering:
			for number in self.scattering:
				x = torch.empty(self.p.shape, device=self.home)
				call("take", number, x.data_ptr(), x.numel(), at=self.home)
				x = x.to(self.p)
				self.p.grad = x if self.p.grad is None else self.p.grad + x
			for hook in (self.p._post_accumulate_grad_hooks or {}).values():
				hook(self.p)
		self.scattering = []

# gather a weight in autograd
class Gathered(torch.autograd.Function):
	"""the whole weight of a range"""
	@staticmethod
	def forward(ctx, leaf, weight):
		ctx.weight = weight
		return weight.get().detach()

	@staticmethod
	def backward(ctx, gradient):
		ctx.weight.add(gradient)
		return torch.zeros_like(ctx.weight.leaf), None

# contain a module whose weights are sharded
class FSDP(torch.nn.Module):
	def __init__(self, module, compute_dtype=None, prefetch=1):
		super().__init__()
		join()
		self.module, self.prefetch, self.weights = module, prefetch, {}
		self.syncing = True
		for layer in module.modules():
			if type(layer).__name__ in SHARDED:
				self.shard(layer, compute_dtype)
		self.order, self.now, self.saved = list(self.weights.values()), [], []
		for x in module.buffers():
			broadcast(x)
		others = [p for p in module.parameters() if p not in self.weights]
		for p in others:
			broadcast(p)
		self.others = [DDPBucketed(torch.nn.ParameterList(others), 25)] \
			if any(p.requires_grad for p in others) else []

# gather a layer's weight around its forward pass
	def shard(self, layer, compute_dtype):
		weight = self.weights.get(layer.weight)
		if weight is None:
			weight = Weight(layer.weight, compute_dtype)
			self.weights[layer.weight] = weight
			weight.leaf.register_post_accumulate_grad_hook(
				lambda leaf: weight.pass_ended(self.syncing))
		layer.register_forward_pre_hook(
			lambda layer, inputs: self.enter(layer, weight))
		layer.register_forward_hook(
			lambda layer, inputs, output: self.leave(layer, weight),
			always_call=True)

	def enter(self, layer, weight):
		weight.fetch()
		self.now.append(weight)
		for ahead in self.order[len(self.now):][:self.prefetch]:
			ahead.fetch()
		layer.__dict__["weight"] = Gathered.apply(
			weight.leaf if weight.p.requires_grad else None, weight)

	def leave(self, layer, weight):
		if layer.__dict__.pop("weight", None) is not None:
			weight.drop()

	@contextlib.contextmanager
	def no_sync(self):
		"""backward passes inside only accumulate, whole gradients"""
		self.syncing, before = False, self.syncing
		with contextlib.ExitStack() as both:
			for others in self.others:
				both.enter_context(others.no_sync())
			try:
				yield
			finally:
				self.syncing = before

# replace saved weights by notes
	def note(self, x):
		"""of a tensor that a layer saves"""
		for weight in self.now[-1:]:
			if weight.whole is not None and weight.whole.data_ptr() \
					== x.untyped_storage().data_ptr():
				self.saved.append(weight)
				return (weight, self.saved, len(self.saved), x.size(), x.stride(),
					x.storage_offset())
		return x.detach()

	def again(self, noted):
		if isinstance(noted, torch.Tensor):
			return noted
		weight, saved, end, size, stride, offset = noted
		weight.fetch()
		for ahead in saved[max(0, end - 1 - self.prefetch):end - 1][::-1]:
			ahead.fetch()
		whole = weight.get().as_strided(size, stride, offset)
		if not weight.p.requires_grad:
			weight.drop()
		return whole

# run the module, and finish its gradients
	def forward(self, *arguments, **named):
		for weight in self.weights.values():
			weight.drop()
		self.now, self.saved = [], []
		with torch.autograd.graph.saved_tensors_hooks(self.note, self.again):
			y = self.module(*arguments, **named)
		self.order = self.now
		return y

	@torch.no_grad()
	def finish_gradient_synchronization(self):
		"""gradients are means over the ranks; after the backward pass"""
		for weight in self.weights.values():
			weight.finish()
		for others in self.others:
			others.finish_gradient_synchronization()

	@torch.no_grad()
	def clip_grad_norm_(self, max_norm, norm_type=2.0):
		"""as torch.nn.utils.clip_grad_norm_, by the norm of all gradients, whole;
		after they were finished, on all ranks"""
		norm, params = torch.nn.utils.get_total_norm, list(self.parameters())
		grads = [p for p in params if p.grad is not None and p.grad.numel()]
		cut, whole = ([p.grad for p in grads if (p in self.weights) == sharded]
			for sharded in (True, False))
		own, number = norm(cut, norm_type).cpu().float(), ctypes.c_int32()
		norms = torch.empty(described()[1], device=HOST)
		call("gather", ctypes.byref(number), own.data_ptr(), len(norms), 0)
		call("take", number, norms.data_ptr(), len(norms))
		total = norm([norms, norm(whole, norm_type).cpu()], norm_type)
		torch.nn.utils.clip_grads_with_norm_(params, max_norm, total)
		return total

	@torch.no_grad()
	def gather_full_params(self):
		"""all parameters by name, whole"""
		named = {}
		for name, p in self.module.named_parameters():
			weight = self.weights.get(p)
			named[name] = p.detach().clone() if weight is None \
				else weight.end(weight.start(p.dtype))
		return named

	@torch.no_grad()
	def load_full_params(self, named):
		"""the inverse: takes this rank's part of whole parameters, by name"""
		for name, p in self.module.named_parameters():
			weight, x = self.weights.get(p), named[name]
			p.copy_(x if weight is None else x.flatten()[weight.range])
