"""fsdp: PyTorch's modules, of whose weights each rank keeps a range

model = FSDP(model, compute_dtype=torch.bfloat16)
loss_of(model(x), y).backward()          # gathers, and sums gradients
model.finish_gradient_synchronization()  # gradients are means over the ranks
optimizer.step()                         # of ranges, in fp32
"""
import ctypes

import torch

from .ddp import DDP, broadcast, call, join, on_host

SHARDED = "Linear", "Embedding"          # classes of layers, whosoever's
TYPES = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}


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
		p.data = p.detach().flatten()[begin.value:end.value].clone()
		self.whole = self.gradient = self.gathering = None
		self.uses, self.scattering = 0, []

# gather a weight's range, and take the whole
	def start(self, dtype=None):
		"""begins to gather it, in that or its own type"""
		number, shard = ctypes.c_int32(), on_host(self.p.to(dtype or self.dtype))
		call("gather", ctypes.byref(number), shard.data_ptr(), self.count,
			TYPES[shard.dtype])
		return number.value

	def end(self, number, dtype=None):
		x = torch.empty(self.shape, dtype=dtype or self.dtype)
		call("take", number, x.data_ptr(), self.count)
		return x.to(self.p.device)

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
		"""of one of its uses; the last sends the sum"""
		self.gradient = gradient if self.gradient is None \
			else self.gradient + gradient
		self.uses -= 1
		if self.uses == 0:
			self.scatter()

	def scatter(self):
		if self.gradient is not None:
			number, x = ctypes.c_int32(), on_host(self.gradient)
			call("reduce_scatter", ctypes.byref(number), x.data_ptr(),
				self.count, TYPES[x.dtype])
			self.scattering.append(number.value)
		self.gradient, self.uses = None, 0
		self.drop()

	def finish(self):
		self.scatter()
		for number in self.scattering:
			x = torch.empty(self.p.shape)
			call("take", number, x.data_ptr(), x.numel())
			x = x.to(self.p)
			self.p.grad = x if self.p.grad is None else self.p.grad + x
		self.scattering = []

# gather a weight in autograd
class Gathered(torch.autograd.Function):
	"""the whole weight of a range"""
	@staticmethod
	def forward(ctx, shard, weight):
		ctx.weight = weight
		return weight.get().detach()

	@staticmethod
	def backward(ctx, gradient):
		ctx.weight.add(gradient)
		return None, None

# contain a module whose weights are sharded
class FSDP(torch.nn.Module):
	def __init__(self, module, compute_dtype=None, prefetch=1):
		super().__init__()
		join()
		self.module, self.prefetch, self.weights = module, prefetch, {}
		for layer in module.modules():
			if type(layer).__name__ in SHARDED:
				self.shard(layer, compute_dtype)
		self.order, self.now, self.saved = list(self.weights.values()), [], []
		for x in module.buffers():
			broadcast(x)
		others = [p for p in module.parameters() if p not in self.weights]
		for p in others:
			broadcast(p)
		self.others = [DDP(torch.nn.ParameterList(others))] \
			if any(p.requires_grad for p in others) else []

# gather a layer's weight around its forward pass
	def shard(self, layer, compute_dtype):
		if layer.weight not in self.weights:
			self.weights[layer.weight] = Weight(layer.weight, compute_dtype)
		weight = self.weights[layer.weight]
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
		weight.uses += torch.is_grad_enabled() and weight.p.requires_grad
		layer.__dict__["weight"] = Gathered.apply(weight.p, weight)

	def leave(self, layer, weight):
		if layer.__dict__.pop("weight", None) is not None:
			weight.drop()

# replace saved weights by notes
	def note(self, x):
		"""of a tensor that a layer saves"""
		for weight in self.now[-1:]:
			if weight.whole is not None and weight.whole.data_ptr() \
					== x.untyped_storage().data_ptr():
				self.saved.append(weight)
				return (weight, len(self.saved), x.size(), x.stride(),
					x.storage_offset())
		return x

	def again(self, noted):
		if isinstance(noted, torch.Tensor):
			return noted
		weight, end, size, stride, offset = noted
		weight.fetch()
		for ahead in self.saved[max(0, end - 1 - self.prefetch):end - 1][::-1]:
			ahead.fetch()
		return weight.get().as_strided(size, stride, offset)

# run the module, and finish its gradients
	def forward(self, *arguments, **named):
		for weight in self.weights.values():
			weight.drop()
		self.now = []
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
		self.saved = []

	@torch.no_grad()
	def gather_full_params(self):
		"""all parameters by name, whole"""
		named = {}
		for name, p in self.module.named_parameters():
			weight = self.weights.get(p)
			named[name] = p.detach().clone() if weight is None \
				else weight.end(weight.start(p.dtype), p.dtype)
		return named
