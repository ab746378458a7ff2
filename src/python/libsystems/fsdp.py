"""fsdp: PyTorch's modules, of whose weights each rank keeps a range

model = FSDP(model, compute_dtype=torch.bfloat16)
loss_of(model(x), y).backward()          # gathers, and sums gradients
model.finish_gradient_synchronization()  # gradients are means over the ranks
optimizer.step()                         # of ranges, in fp32

Gradients of several backward passes before finish_gradient_synchronization() add
up. Passes in `with model.no_sync():` send nothing, and keep whole gradients.
All ranks run the same layers in the same order. A weight is whole within its
layer alone: elsewhere, and in state_dict(), it is this rank's range, so what
looks at all gradients, as a GradScaler does or torch's clip_grad_norm_, sees a
part; model.clip_grad_norm_() sees all. compute_dtype is that of weights: inputs
and biases have to fit. Buffers are sent when the module is wrapped, and not again
"""
import contextlib
import ctypes

import torch

from .ddp import (HOST, DDPBucketed, broadcast, call, described, home_of, join,
	packed, refuse_strangers)

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
		if p.dim() != 2 or not self.count:
			raise ValueError(f"fsdp: a weight of {tuple(p.shape)} is empty, or "
				"sharded already")
		begin, end = ctypes.c_int64(), ctypes.c_int64()
		call("range", self.count, ctypes.byref(begin), ctypes.byref(end))
		broadcast(p)
		self.range = slice(begin.value, end.value)
		p.data = p.detach().flatten()[self.range].clone()
		self.home = home_of([p])
		self.whole = self.gathering = self.gradient = self.kept = None
		self.scattering, self.mark = [], None
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
	def marked(self):
		"""is p.grad what it was when the sum began? zero_grad() ends a sum"""
		return self.mark is not None and self.p.grad is self.mark[0] \
			and self.mark[0]._version == self.mark[1]

	def begin(self):
		"""a sum, which will be p.grad or, if there is one, be added to it"""
		self.fresh = self.p.grad is None
		if self.fresh:
			self.p.grad = torch.zeros_like(self.p)
		self.mark = self.p.grad, self.p.grad._version
		self.gradient = self.kept = None

	def add(self, gradient):
		"""of one of its uses"""
		if not self.marked():
			self.begin()
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
		self.scattering.append((number.value, self.mark))
		self.kept = None

	def finish(self):
		self.drop()
		marked, total = self.marked(), None
		if self.kept is not None and marked:
			self.scatter()
		for number, mark in self.scattering:
			x = torch.empty(self.p.shape, device=self.home)
			call("take", number, x.data_ptr(), x.numel(), at=self.home)
			if marked and mark is self.mark:
				x = x.to(self.p)
				total = x if total is None else total + x
		if total is not None:
			self.p.grad = total if self.fresh else self.p.grad + total
			for hook in (self.p._post_accumulate_grad_hooks or {}).values():
				hook(self.p)
		self.scattering, self.mark = [], None
		self.gradient = self.kept = None

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
			if type(layer).__name__ in SHARDED \
					and layer._parameters.get("weight") is not None:
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
			lambda layer, inputs: self.enter(layer, weight), prepend=True)
		layer.register_forward_hook(
			lambda layer, inputs, output: self.leave(layer, weight),
			always_call=True)

	def __deepcopy__(self, memo):
		raise RuntimeError("fsdp: copy the module, and wrap the copy")

	def enter(self, layer, weight):
		if layer._parameters["weight"] is not weight.p:
			raise RuntimeError("fsdp: this layer has another weight than the one "
				"that was wrapped; is it a copy?")
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
		return x.detach(), x._version

	def again(self, noted):
		if len(noted) == 2:
			x, version = noted
			if x._version != version:
				raise RuntimeError("fsdp: a tensor that the backward pass needs "
					"was modified by an inplace operation")
			return x
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
		refuse_strangers(self.module, {*self.weights,
			*(p for others in self.others for p in others.shared)})
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
			weight, x = self.weights.get(p), named.get(name)
			shape = p.shape if weight is None else weight.shape
			if x is None or x.shape != shape:
				raise ValueError(f"fsdp: {name} is not given as {tuple(shape)}")
			p.copy_(x if weight is None else x.flatten()[weight.range])
