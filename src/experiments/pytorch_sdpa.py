"""pytorch_sdpa: times PyTorch's attention, and compares its errors with ours"""
import contextlib
import math
import statistics
import sys
import time
from importlib.util import find_spec

from pytorch_peer import (EPS, F, Clock, attention, columns_of, command_line,
	graph_of, queued_ms, set_precision, torch)
from torch._functorch import config as compiling


# choose PyTorch's kernels of attention
def attention_by(backend, causal=True):
	"""attention of PyTorch: naive (eager or compiled), or one of its libraries"""
	if backend == "eager":
		return attention
	if backend == "compiled":
		return torch.compile(attention)
	if backend == "fa4":
		from flash_attn.cute import flash_attn_func

		def rows_first(q, k, v):         # (batch, rows, heads, D)
			o = flash_attn_func(*(x.transpose(1, 2) for x in (q, k, v)),
				causal=causal)
			return (o[0] if isinstance(o, tuple) else o).transpose(1, 2)

		return rows_first

	def attention_of(q, k, v):
		with kernels_of(backend):
			return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

	return attention_of


BESIDE = {"fa4": "flash_attn.cute"}      # no part of PyTorch: its module


def is_there(backend):
	try:
		return backend not in BESIDE or bool(find_spec(BESIDE[backend]))
	except ImportError:                  # the package is not there at all
		return False


def name_of(backend):
	return backend if backend in BESIDE else "pytorch-" + backend


def kernels_of(backend):
	return torch.nn.attention.sdpa_kernel(getattr(torch.nn.attention.SDPBackend,
		{"cudnn": "CUDNN_ATTENTION", "flash2": "FLASH_ATTENTION",
		"efficient": "EFFICIENT_ATTENTION"}[backend]))


# time PyTorch's attention by events
def drawn(args):
	"""queries, keys and values, and the gradient of the output"""
	set_precision("fp32")
	torch.manual_seed(args.seed)
	dtype = torch.bfloat16 if args.dtype == "bf16" else torch.float32
	shape = (args.batch, args.heads, args.n, args.d)
	q, k, v, g = (torch.randn(shape, device="cuda", dtype=dtype)
		for _ in range(4))
	return [x.requires_grad_() for x in (q, k, v)], g


def command_time(args):
	leaves, g = drawn(args)
	for backend in filter(is_there, args.backends.split(",")):
		print(f"variant={name_of(backend)}", time_attention(attention_by(backend),
			leaves, g, args.runs, True), flush=True)


def command_passes(args):
	"""a row of one back end, without both passes together"""
	print(time_attention(attention_by(args.backend), *drawn(args), args.runs,
		False))


def time_attention(attention_of, leaves, g, runs, together):
	"""both passes apart, and perhaps together, as key=value"""
	def mark():
		event = torch.cuda.Event(enable_timing=True)
		event.record()
		return event

	def passes(times):
		"""a clock of passes that are queued without waiting, as ours are"""
		clock, marks = Clock(), []
		for i in range(times):
			marks.append(mark())
			o = attention_of(*leaves)
			marks.append(mark())
			torch.autograd.grad(o, leaves, g)
		marks.append(mark())
		torch.cuda.synchronize()
		ms = [a.elapsed_time(b) for a, b in zip(marks, marks[1:])]
		clock.ms = {"fwd": ms[::2], "bwd": ms[1::2],
			"both": [sum(pair) for pair in zip(ms[::2], ms[1::2])]}
		return clock

	torch.cuda.reset_peak_memory_stats()
	try:
		both = passes(5).ms["both"][-1]
	except torch.OutOfMemoryError:
		return "status=oom"
	# long passes are repeated less often
	clock = passes(max(3, min(runs, int(400 / both))))
	peak = torch.cuda.max_memory_allocated() / 2**20
	answers = clock.columns("fwd") | clock.columns("bwd")
	if together:
		answers["both_ms"] = clock.columns("both")["both_ms"]
	answers["peak_MiB"] = f"{peak:.2f}"
	return " ".join(f"{key}={value}" for key, value in answers.items()) \
		+ " status=ok"


# time a grid of shapes by PyTorch
def worst_error(o, gradients, q, k, v, g, causal):
	"""of rows of a head: the largest difference, over what it is judged by"""
	dq, dk, dv = gradients
	o, dq, dk, dv, q, k, v, g = (x[-1, x.shape[1] // 2].detach().double()
		for x in (o, dq, dk, dv, q, k, v, g))
	n, scale, errors = q.shape[0], q.shape[1] ** -0.5, []

	def judge(got, want, size):
		size = want.abs().max().clamp(min=size)
		errors.append(((got - want).abs().max() / size).item())

	for i in (0, n // 3, n - 1):
		keys = i + 1 if causal else n
		p = (k[:keys] @ q[i] * scale).softmax(-1)
		dp = v[:keys] @ g[i]
		delta = p @ dp
		ds = p * (dp - delta) * scale
		judge(o[i], p @ v[:keys], 0.05)
		judge(dq[i], ds @ k[:keys],
			(p * (dp.abs() + delta.abs())).sum().item() * scale)
		if causal and i == n - 1:        # key i is seen by query i alone
			judge(dk[i], ds[i] * q[i], 0.05)
			judge(dv[i], p[i] * g[i], 0.05)
	return math.nan if any(map(math.isnan, errors)) else max(errors)

# time both passes by calls and by replays
def grid_columns(attention_of, leaves, g, causal, stream):
	"""each pass by calls and by replays, and the error, as key=value"""
	o = attention_of(*leaves)
	passes = {"fwd": lambda: attention_of(*leaves),
		"bwd": lambda: torch.autograd.grad(o, leaves, g, retain_graph=True)}
	error = worst_error(o, passes["bwd"](), *leaves, g, causal)
	right = error <= (5e-5 if o.dtype == torch.float32 else 5e-2)
	once = sum(statistics.median(queued_ms(work, 3)) for work in passes.values())
	runs = max(10, min(200, int(200 / once)))
	answers = {"runs": runs, "error": f"{error:.3g}"}
	for replayed in (False, True):
		for name, work in passes.items():
			if replayed:
				work = graph_of(work, stream)
				name += "_replay"
			if work:
				ms = queued_ms(work, runs)
				answers[name + "_ms"] = f"{statistics.median(ms):.5f}"
				answers[name + "_sd_ms"] = f"{statistics.stdev(ms):.5f}"
	answers["status"] = "ok" if right or math.isnan(error) else "wrong"
	return " ".join(f"{key}={value}" for key, value in answers.items())
# print a row for each back end


def command_grid(args):
	compiling.donated_buffer = False     # a backward pass runs many times
	set_precision("fp32")
	torch.manual_seed(args.seed)
	dtype = torch.bfloat16 if args.dtype == "bf16" else torch.float32
	shape = (args.batch, args.heads, args.n, args.d)
	stream = torch.cuda.Stream()
	with torch.cuda.stream(stream):
		q, k, v, g = (torch.randn(shape, device="cuda", dtype=dtype)
			for _ in range(4))
		leaves = [x.requires_grad_() for x in (q, k, v)]
		for backend in filter(is_there, args.backends.split(",")):
			answer = columns_of(f"pytorch_sdpa: {backend}", lambda: grid_columns(
				attention_by(backend, args.causal), leaves, g, args.causal,
				stream))
			print(f"variant={name_of(backend)}", answer, flush=True)


# compute attention in wide precision
def attention_wide(q, k, v, g, wide):
	"""O, dQ, dK, dV by the formulas; what softmax sums is in wide precision"""
	scale, n = q.shape[-1] ** -0.5, q.shape[-2]
	hidden = torch.ones(n, n, device=q.device, dtype=torch.bool).triu(1)
	S = (q @ k.mT * scale).masked_fill(hidden, -math.inf)
	P = S.to(wide).softmax(-1).to(q.dtype)
	dP = (g @ v.mT).to(wide)
	dS = (P * (dP - (P * dP).sum(-1, keepdim=True)) * scale).to(q.dtype)
	return P @ v, dS @ k, dS.mT @ q, P.mT @ g


def errors_of(attention_of, q, k, v, g, exact):
	"""of O, dQ, dK, dV, relative to the norm of what is exact"""
	leaves = [x.clone().requires_grad_() for x in (q, k, v)]
	o = attention_of(*leaves)
	arrays = (o, *torch.autograd.grad(o, leaves, g))
	return [((got.double() - want).norm() / want.norm()).item()
		for got, want in zip(arrays, exact)]


class Wide(torch.autograd.Function):
	"""attention_wide in fp32, with a softmax in float64"""
	@staticmethod
	def forward(ctx, q, k, v):
		ctx.save_for_backward(q, k, v)
		return attention_wide(q, k, v, torch.zeros_like(q), torch.double)[0]

	@staticmethod
	def backward(ctx, g):
		return attention_wide(*ctx.saved_tensors, g, torch.double)[1:]


# load our functions for PyTorch
def our_package():
	try:
		import libsystems
	except ImportError as error:
		sys.exit(f"pytorch_sdpa: {error}: make site installs it")
	return libsystems


def our_attention():
	attend = our_package().flash_attention
	return lambda q, k, v: attend(q, k, v, causal=True)


# time calls that nobody waits for
def us_of_calls(work, calls, wait):
	"""of one: until the last has returned, until the device is done"""
	start = time.perf_counter()
	for _ in range(calls):
		work()
	returned = time.perf_counter()
	wait()
	return [1e6 * (end - start) / calls for end in (returned,
		time.perf_counter())]

# list what is called
def callees(op, on_gpu):
	"""what is called, and in which context, by name"""
	nothing = contextlib.nullcontext
	if op == "rmsnorm":
		return {"ours": (our_package().rms_norm, nothing), "pytorch": (
			lambda x, g: F.rms_norm(x, g.shape, g, EPS), nothing)}
	theirs = lambda q, k, v: F.scaled_dot_product_attention(q, k, v,
		is_causal=True)
	found = {"ours": (our_attention(), nothing)}
	if not on_gpu:
		return found | {"pytorch": (theirs, nothing)}
	return found | {"pytorch-" + name: (theirs, lambda name=name:
		kernels_of(name)) for name in ("cudnn", "flash2")}

# time a round of calls
def round_of_calls(run, leaves, g, calls, wait):
	"""as key=value's pairs: forward, and both passes"""
	passes = {"fwd": lambda: run(*leaves),
		"both": lambda: torch.autograd.grad(run(*leaves), leaves, g)}
	return {f"{name}_{end}_us": us for name, work in passes.items()
		for end, us in zip(("call", "done"), us_of_calls(work, calls, wait))}
# take turns and keep the least


def command_calls(args):
	torch.manual_seed(args.seed)
	on_gpu = args.tensors == "gpu"
	dtype = torch.bfloat16 if args.dtype == "bf16" else torch.float32
	shapes = ([(1, 1, args.n, args.d)] * 3 if args.op == "attention"
		else [(args.n, args.d), (args.d,)])
	*leaves, g = (torch.randn(shape, device="cuda" if on_gpu else "cpu",
		dtype=dtype) for shape in (*shapes, shapes[0]))
	for x in leaves:
		x.requires_grad_()
	wait = torch.cuda.synchronize if on_gpu else lambda: None
	compared = callees(args.op, on_gpu)
	rounds = {impl: [] for impl in compared}
	for i in range(1 + args.rounds):
		for impl, (run, context) in list(compared.items()):
			try:
				with context():
					rounds[impl].append(round_of_calls(run, leaves, g,
						args.calls, wait))
			except RuntimeError as error:
				print(f"pytorch_sdpa: {impl}: {error}", file=sys.stderr)
				del compared[impl]
	for impl, (_, *taken) in ((impl, us or [None]) for impl, us
			in rounds.items()):
		row = [f"{key}={min(us[key] for us in taken):.2f}"
			for key in (taken[0] if impl in compared else ())]
		print(f"impl={impl}", *row, "status=ok" if row else "status=refused",
			flush=True)


# print the errors of ours and of a peer
def command_errors(args):
	"""errors of our attention and of another's, on the same inputs"""
	our = our_attention()
	set_precision("fp32")
	torch.manual_seed(args.seed)
	dtype = torch.bfloat16 if args.dtype == "bf16" else torch.float32
	other = attention_by("cudnn") if args.dtype == "bf16" else Wide.apply
	for data in ("normal", "outliers"):
		for d in (64, 128):
			inputs = [torch.randn(1, args.heads, args.n, d, device="cuda")
				for _ in range(4)]
			if data == "outliers":
				for x in inputs:
					x += 10 * torch.randn_like(x) * (torch.rand_like(x) < 0.001)
			inputs = [x.to(dtype) for x in inputs]
			exact = attention_wide(*(x.double() for x in inputs), torch.double)
			ours = errors_of(our, *inputs, exact)
			theirs = errors_of(other, *inputs, exact)
			print(f"data={data} d={d}", *(f"{key}={error:.4g}" for key, error
				in zip(("o", "dq", "dk", "dv", "peer_o", "peer_dq", "peer_dk",
				"peer_dv"), ours + theirs)), "status=ok", flush=True)


# read the command line of PyTorch's attention
def main():
	parser, add = command_line("pytorch_sdpa", __doc__)

	def command(name, run, **settings):
		p = add(name, run, **settings, seed=1)
		p.add_argument("--dtype", choices=("fp32", "bf16"), default="bf16")
		return p

	command("passes", command_passes, batch=1, heads=1, n=1024, d=64, runs=20) \
		.add_argument("--backend", default="eager")
	command("time", command_time, batch=1, heads=1, n=1024, d=64, runs=20) \
		.add_argument("--backends", default="cudnn", metavar="LIST",
		help="of eager, compiled, cudnn, flash2, efficient, fa4; commas between")
	grid = command("grid", command_grid, batch=1, heads=1, n=1024, d=64)
	grid.add_argument("--backends", default="cudnn,flash2,fa4", metavar="LIST")
	grid.add_argument("--causal", action="store_true")
	command("errors", command_errors, heads=4, n=2048)
	calls = command("calls", command_calls, n=1024, d=64, calls=100, rounds=21)
	calls.add_argument("--op", choices=("attention", "rmsnorm"),
		default="attention")
	calls.add_argument("--tensors", choices=("cpu", "gpu"), default="gpu")
	args = parser.parse_args()
	on_cpu = args.command == "calls" and args.tensors == "cpu"
	if not on_cpu and not torch.cuda.is_available():
		parser.error("PyTorch finds no GPU")
	args.run(args)


if __name__ == "__main__":
	main()
