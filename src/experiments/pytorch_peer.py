"""pytorch_peer: the staff's Transformer in PyTorch, and its times"""
import argparse
import contextlib
import math
import statistics
import sys

try:
	import torch
	import torch.nn.functional as F
	from torch import nn
except ImportError as error:
	sys.exit(f"pytorch_peer: PyTorch is not there: {error}")

# name the six models
# d_model, d_ff, layers, heads
SIZES = {
	"small": (768, 3072, 12, 12), "medium": (1024, 4096, 24, 16),
	"large": (1280, 5120, 36, 20), "xl": (1600, 6400, 48, 25),
	"2.7B": (2560, 10240, 32, 32), "10B": (4608, 12288, 50, 36),
}
VOCAB, EPS, THETA = 10000, 1e-5, 10000.0


def shape_of(size, context):
	d_model, d_ff, layers, heads = SIZES[size]
	return dict(context_length=context, vocab_size=VOCAB, d_model=d_model,
		num_heads=heads, num_layers=layers, d_ff=d_ff)

# define linear layer, embedding and norm
class Linear(nn.Linear):
	def __init__(self, d_in, d_out):
		super().__init__(d_in, d_out, bias=False)

	def reset_parameters(self):
		sd = math.sqrt(2 / (self.in_features + self.out_features))
		nn.init.trunc_normal_(self.weight, std=sd, a=-3 * sd, b=3 * sd)


class Embedding(nn.Module):
	def __init__(self, vocab, d_model):
		super().__init__()
		self.weight = nn.Parameter(nn.init.trunc_normal_(
			torch.empty(vocab, d_model), a=-3, b=3))

	def forward(self, tokens):
		return self.weight[tokens]

# normalize rows in fp32
class RMSNorm(nn.Module):
	def __init__(self, d_model):
		super().__init__()
		self.weight = nn.Parameter(torch.ones(d_model))

	def forward(self, x):
		dtype = x.dtype
		x = x.to(torch.promote_types(dtype, torch.float32))
		x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS)
		return (self.weight * x).to(dtype)

# define attention with rotary embeddings
class Rope(nn.Module):
	def __init__(self, context, head_size):
		super().__init__()
		powers = THETA ** -(torch.arange(0, head_size, 2) / head_size)
		angles = torch.outer(torch.arange(context).to(powers), powers)
		self.register_buffer("cos", torch.cos(angles), persistent=False)
		self.register_buffer("sin", torch.sin(angles), persistent=False)

	def forward(self, x):                # (batch, heads, T, head_size)
		T = x.shape[-2]
		cos, sin = self.cos[:T], self.sin[:T]
		even, odd = x[..., 0::2], x[..., 1::2]
		turned = (cos * even - sin * odd, sin * even + cos * odd)
		return torch.stack(turned, dim=-1).flatten(-2)

# define attention by a softmax and by the library
def softmax(x):
	e = torch.exp(x - x.amax(dim=-1, keepdim=True))
	return e / e.sum(dim=-1, keepdim=True)


def attention(q, k, v):
	T = q.shape[-2]
	seen = torch.tril(torch.ones(T, T, dtype=torch.bool, device=q.device))
	scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
	return softmax(torch.where(seen, scores, -torch.inf)) @ v


def library_attention(q, k, v):
	return F.scaled_dot_product_attention(q.to(v.dtype), k.to(v.dtype), v,
		is_causal=True)

# project, rotate and attend
class Attention(nn.Module):
	def __init__(self, shape, attend):
		super().__init__()
		C, self.heads = shape["d_model"], shape["num_heads"]
		self.q_proj, self.k_proj = Linear(C, C), Linear(C, C)
		self.v_proj, self.output_proj = Linear(C, C), Linear(C, C)
		self.rope = Rope(shape["context_length"], C // self.heads)
		self.attend = attend

	def forward(self, x):
		B, T, C = x.shape
		q, k, v = (project(x).view(B, T, self.heads, -1).transpose(1, 2)
			for project in (self.q_proj, self.k_proj, self.v_proj))
		o = self.attend(self.rope(q), self.rope(k), v)
		return self.output_proj(o.transpose(1, 2).reshape(B, T, C))

# define the block and the Transformer
class SwiGLU(nn.Module):
	def __init__(self, d_model, d_ff):
		super().__init__()
		self.w1, self.w3 = Linear(d_model, d_ff), Linear(d_model, d_ff)
		self.w2 = Linear(d_ff, d_model)

	def forward(self, x):
		gate = self.w1(x)
		return self.w2(gate * torch.sigmoid(gate) * self.w3(x))


class Block(nn.Module):
	def __init__(self, shape, attend):
		super().__init__()
		C = shape["d_model"]
		self.ln1, self.ln2 = RMSNorm(C), RMSNorm(C)
		self.attn = Attention(shape, attend)
		self.ffn = SwiGLU(C, shape["d_ff"])

	def forward(self, x):
		x = x + self.attn(self.ln1(x))
		return x + self.ffn(self.ln2(x))

# define the Transformer and its loss
class Transformer(nn.Module):
	def __init__(self, shape, attend=attention):
		super().__init__()
		C, V = shape["d_model"], shape["vocab_size"]
		self.token_embeddings = Embedding(V, C)
		self.layers = nn.ModuleList(
			Block(shape, attend) for _ in range(shape["num_layers"]))
		self.ln_final = RMSNorm(C)
		self.lm_head = Linear(C, V)

	def forward(self, tokens):
		x = self.token_embeddings(tokens)
		for block in self.layers:
			x = block(x)
		return self.lm_head(self.ln_final(x))


def mean_loss(logits, targets):
	return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

# choose the arithmetic of matmuls
def set_precision(precision):
	torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
	torch.backends.cudnn.allow_tf32 = precision == "tf32"


def autocast(precision):
	if precision in ("bf16", "fp8"):
		return torch.autocast("cuda", dtype=torch.bfloat16)
	return contextlib.nullcontext()


def multiply_in_fp8(model):
	"""linear layers of the blocks in FP8, by torchao's dynamic scaling"""
	try:
		from torchao.float8 import convert_to_float8_training
	except ImportError as error:
		sys.exit(f"pytorch_peer: torchao is not there: {error}")
	convert_to_float8_training(model.layers)

# time the phases of a step
class Clock:
	"""collects milliseconds of the GPU under names"""
	def __init__(self):
		self.ms = {}

	def time(self, name, work):
		start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
		torch.cuda.synchronize()
		start.record()
		result = work()
		end.record()
		torch.cuda.synchronize()
		self.ms.setdefault(name, []).append(start.elapsed_time(end))
		return result

	def columns(self, name):
		ms = self.ms[name]
		sd = statistics.stdev(ms) if len(ms) > 1 else 0.0
		return {f"{name}_ms": f"{statistics.median(ms):.4f}",
			f"{name}_sd_ms": f"{sd:.4f}"}

# build the model, the optimizer and the forward pass
def prepare(args):
	"""functions: the loss of the batch; one step of the optimizer"""
	torch.manual_seed(args.seed)
	set_precision(args.precision)
	best = args.impl == "best"
	with torch.device("cuda"):
		model = Transformer(shape_of(args.size, args.context),
			library_attention if best else attention)
		tokens, targets = torch.randint(VOCAB, (2, args.batch, args.context))
	if args.precision == "fp8":
		multiply_in_fp8(model)
	optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3,
		weight_decay=0.01, **({"fused": True} if best else {}))

	def top(x):
		return mean_loss(model.lm_head(model.ln_final(x)), targets)

	def loss():
		x = model.token_embeddings(tokens)
		for block in model.layers:
			x = block(x)
		return top(x)

	if args.blocks:
		for block in model.layers:
			block.compile()
		top, run = torch.compile(top), loss
	else:
		run = loss if args.impl == "eager" else torch.compile(loss,
			mode="reduce-overhead" if args.graphs else "default")

	def forward():
		if args.graphs:
			torch.compiler.cudagraph_mark_step_begin()
		with autocast(args.precision):
			return run()

	return forward, optimizer

# measure phases, whole steps and forward passes
def measure(args):
	forward, optimizer = prepare(args)
	clocks = [Clock(), Clock()]                      # warm-up's, and ours

	def step(clock):
		optimizer.zero_grad()
		loss = clock.time("fwd", forward)
		clock.time("bwd", loss.backward)
		clock.time("opt", optimizer.step)
		return loss.item()

	def whole_step():
		optimizer.zero_grad()
		loss = forward()
		loss.backward()
		optimizer.step()
		return loss

	@torch.no_grad()
	def forward_only():
		return forward()

	first = step(clocks[0])
	for i in range(1 - args.warmup, args.steps):
		if i == 0:
			torch.cuda.reset_peak_memory_stats()
		step(clocks[i >= 0])
	for i in range(args.steps):
		last = clocks[1].time("step", whole_step).item()
	peak = torch.cuda.max_memory_allocated() / 2**20
	names = ("fwd", "bwd", "opt", "step")
	if args.forward:
		names = ("fwd_only", *names)
		for i in range(-args.warmup, args.steps):
			clocks[i >= 0].time("fwd_only", forward_only)
	if math.isfinite(last) and not last < first:
		sys.exit(f"training did not lower the loss: {first}, then {last}")
	row = {key: value for name in names for key, value
		in clocks[1].columns(name).items()
		if name == "step" or not key.endswith("_sd_ms")}
	return row | {"peak_MiB": f"{peak:.1f}", "loss": f"{last:.6f}"}

# print a row of one configuration
def command_time(args):
	row = {}
	try:
		row = measure(args) | {"status": "ok"}
	except RuntimeError as error:        # OutOfMemoryError is one of them
		text = str(error)
		if "out of memory" not in text and "ALLOC_FAILED" not in text:
			raise
		row["status"] = "oom"
	print(*(f"{key}={value}" for key, value in row.items()))

# time norms alone
WARMUP = 3


def queued_ms(work, runs):
	"""milliseconds of each run of work that is queued without waiting"""
	events = [torch.cuda.Event(enable_timing=True) for _ in range(runs + 1)]
	for i in range(-WARMUP, runs):
		if i >= 0:
			events[i].record()
		work()
	events[runs].record()
	torch.cuda.synchronize()
	return [a.elapsed_time(b) for a, b in zip(events, events[1:])]


def graph_of(work, stream=None):
	"""a function that does the work again, or None"""
	graph = torch.cuda.CUDAGraph()
	try:
		with torch.cuda.graph(graph, stream=stream):
			work()
	except RuntimeError:
		torch.cuda.synchronize()
		return None
	return graph.replay


def replay_ms(work, runs):
	"""milliseconds of each replay of the work, recorded as a graph"""
	for _ in range(WARMUP):
		work()
	torch.cuda.synchronize()
	if not (replay := graph_of(work)):
		raise RuntimeError("PyTorch could not record the work as a graph")
	return queued_ms(replay, runs)

def columns_of(name, work):
	"""what the work returns, key=value, or a status that says why not"""
	try:
		return work()
	except torch.OutOfMemoryError:
		return "status=oom"
	except (RuntimeError, AssertionError, ValueError) as error:
		print(f"{name}: {error}", file=sys.stderr)
		return "status=refused"

# print a row of each norm
@torch.no_grad()
def command_norms(args):
	torch.manual_seed(args.seed)
	set_precision("fp32")
	with torch.device("cuda"):
		x = torch.randn(args.rows, args.width)
		eager, layer = RMSNorm(args.width), nn.LayerNorm(args.width, eps=EPS)
		native = nn.RMSNorm(args.width, eps=EPS)
		gain = nn.Parameter(1 + 0.1 * torch.randn(args.width))
	eager.weight = native.weight = layer.weight = gain
	wants = {"RMSNorm": eager(x),
		"LayerNorm": eager(x - x.mean(-1, keepdim=True))}
	for impl, name, norm in (("eager", "RMSNorm", eager),
			("compiled", "RMSNorm", torch.compile(eager)),
			("native", "RMSNorm", native), ("native", "LayerNorm", layer)):
		torch.testing.assert_close(norm(x), wants[name], atol=1e-4, rtol=1e-4)
		clock = Clock()
		clock.ms["fwd"] = replay_ms(lambda: norm(x), args.repeats)
		GBps = 2e-6 * x.nbytes / statistics.median(clock.ms["fwd"])
		row = {"impl": "pytorch-" + impl, "norm": name,
			"fwd_GBps": f"{GBps:.2f}", "fwd_fraction": f"{GBps / args.copy:.6f}"}
		row |= clock.columns("fwd")
		print(*(f"{key}={value}" for key, value in row.items()), "status=ok",
			flush=True)

# print the types of autocast
def toy_types(device, dtype):
	"""the types of one training step's tensors under autocast, by name"""
	fc1, fc2 = nn.Linear(20, 10, bias=False), nn.Linear(10, 5, bias=False)
	toy = nn.ModuleDict({"fc1": fc1, "ln": nn.LayerNorm(10), "fc2": fc2})
	toy.to(device)
	x = torch.randn(32, 20, device=device)
	targets = torch.randint(5, (32,), device=device)
	made = {}
	types = {"input": x.dtype}
	with torch.autocast(device, dtype=dtype):
		for name, layer in (("fc1 output", fc1), ("relu output", F.relu),
				("ln output", toy["ln"]), ("logits", fc2)):
			x = made[name] = layer(x)
			x.retain_grad()
		loss = F.cross_entropy(x, targets)
	loss.backward()
	types["loss"] = loss.dtype
	for name, x in (*made.items(), *toy.named_parameters()):
		types[name], types["grad of " + name] = x.dtype, x.grad.dtype
	return types


def command_toy(args):
	short = {torch.float32: "fp32", torch.bfloat16: "bf16",
		torch.float16: "fp16"}
	bf16 = toy_types(args.device, torch.bfloat16)
	fp16 = toy_types(args.device, torch.float16)
	for name in bf16:
		print(name, short[bf16[name]], short[fp16[name]], sep="\t")

# read PyTorch's command line
def command_line(prog, about):
	"""a parser, and a function that adds a command with such options"""
	parser = argparse.ArgumentParser(prog=prog, description=about)
	commands = parser.add_subparsers(dest="command", required=True)

	def command(name, run, **settings):
		p = commands.add_parser(name)
		p.set_defaults(run=run)
		for option, default in settings.items():
			p.add_argument("--" + option.replace("_", "-"), default=default,
				type=type(default))
		return p

	return parser, command


# read the command line of the staff's Transformer
def main():
	parser, command = command_line("pytorch_peer", __doc__)
	device = "cuda" if torch.cuda.is_available() else "cpu"
	timing = command("time", command_time, warmup=5, steps=10, context=512,
		batch=4, seed=1)
	timing.add_argument("--size", choices=SIZES, default="small")
	timing.add_argument("--impl", choices=("eager", "compiled", "best"),
		default="eager")
	for form in ("forward", "blocks", "graphs"):
		timing.add_argument("--" + form, action="store_true")
	timing.add_argument("--precision", choices=("fp32", "tf32", "bf16",
		"fp8"), default="fp32")
	command("norms", command_norms, rows=50000, width=1024, repeats=1000,
		seed=1, copy=3000.0)
	command("toy", command_toy, device=device)
	args = parser.parse_args()
	if args.run != command_toy and device == "cpu":
		parser.error("PyTorch finds no GPU")
	if args.run == command_time and (args.warmup < 1 or args.steps < 1):
		parser.error("--warmup and --steps are at least 1")
	if args.run == command_time and args.graphs and (args.blocks
			or args.impl == "eager"):
		parser.error("--graphs: only what is compiled as a whole")
	args.run(args)


if __name__ == "__main__":
	main()
