"""pytorch_golden: writes golden vectors made with PyTorch, or compares with
them"""
import contextlib
import ctypes
import json
import math
import mmap
import struct
import sys

from pytorch_peer import (SIZES, VOCAB, Transformer, command_line, mean_loss,
	set_precision, shape_of, torch)

# write and read tensor files by hand
DTYPES = {torch.float64: "F64", torch.float32: "F32", torch.int32: "I32"}


def save(path, tensors, metadata):
	names = sorted(tensors, key=lambda n: (-tensors[n].element_size(), n))
	header, at = {"__metadata__": metadata}, 0
	for name in names:
		t = tensors[name] = tensors[name].detach().cpu().contiguous()
		header[name] = {"dtype": DTYPES[t.dtype], "shape": list(t.shape),
			"data_offsets": [at, at + t.nbytes]}
		at += t.nbytes
	text = json.dumps(header).encode()
	text += b" " * (-len(text) % 8)
	with open(path, "wb") as f:
		f.write(struct.pack("<Q", len(text)) + text)
		for name in names:
			t = tensors[name]
			f.write((ctypes.c_char * t.nbytes).from_address(t.data_ptr()))

# map a tensor file
def load(path):
	"""tensors that lie in the mapped file, and the metadata"""
	with open(path, "rb") as f:
		bytes_ = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY)
	length, = struct.unpack_from("<Q", bytes_)
	header = json.loads(bytes_[8:8 + length])
	metadata = header.pop("__metadata__")
	dtypes = {name: dtype for dtype, name in DTYPES.items()}
	return {name: torch.frombuffer(bytes_, dtype=dtypes[t["dtype"]],
		count=math.prod(t["shape"]), offset=8 + length + t["data_offsets"][0])
		.view(t["shape"]) for name, t in header.items()}, metadata

# compute what golden vectors hold
def adamw_step(weights, m, v, t):
	lr, b1, b2, eps, decay = 1e-3, 0.9, 0.999, 1e-8, 0.01
	rate = lr * math.sqrt(1 - b2**t) / (1 - b1**t)
	with torch.no_grad():
		for name, w in weights.items():
			w.mul_(1 - lr * decay)
			m[name].mul_(b1).add_(w.grad, alpha=1 - b1)
			v[name].mul_(b2).addcmul_(w.grad, w.grad, value=1 - b2)
			w.addcdiv_(m[name], v[name].sqrt().add_(eps), value=-rate)
			w.grad = None


def on_host(t):
	return t.detach().cpu().clone()

# train three steps and keep what a test compares
def vectors(model, tokens, targets, keep=on_host,
		cast=contextlib.nullcontext()):
	"""what the model makes of weights and batch, which it trains on"""
	weights = dict(model.named_parameters())
	m = {name: torch.zeros_like(w) for name, w in weights.items()}
	v = {name: torch.zeros_like(w) for name, w in weights.items()}
	out = {}
	for t in range(1, 4):
		with cast:
			logits = model(tokens)
			loss = mean_loss(logits, targets)
		loss.backward()
		if t == 1:
			out["logits"] = keep(logits)
			out["loss"] = on_host(loss).float().reshape(1)
			out["loss64"] = mean_loss(logits.detach().double(),
				targets).cpu().reshape(1)
			for name, w in weights.items():
				out["grad." + name] = keep(w.grad)
		adamw_step(weights, m, v, t)
	for name, w in weights.items():
		out["step3." + name] = keep(w)
	return out


def golden(model, tokens, targets):
	"""all that a file of golden vectors holds; trains the model"""
	weights = {name: on_host(w) for name, w in model.named_parameters()}
	return weights | vectors(model, tokens, targets) | {
		"tokens": tokens.cpu().int(), "targets": targets.cpu().int()}

# write golden vectors of fresh weights
def with_gains(model):
	with torch.no_grad():
		for w in model.parameters():
			if w.dim() == 1:
				w.copy_(1 + 0.2 * torch.randn(w.shape))
	return model


def described(shape, **more):
	"""the metadata of a file of golden vectors"""
	return {name: str(value) for name, value in (shape | more).items()} | {
		"rope_theta": "10000", "torch": torch.__version__,
		"source": "pytorch_golden.py"}

# write a file of golden vectors
def command_gold(args):
	set_precision("fp32")
	torch.manual_seed(args.seed)
	shape = shape_of(args.size, args.context)
	model = with_gains(Transformer(shape))
	tokens, targets = torch.randint(VOCAB, (2, args.batch, args.context))
	model.to(args.device)
	out = golden(model, tokens.to(args.device), targets.to(args.device))
	save(args.out, out, described(shape, batch_size=args.batch))
	print(f"out={args.out} loss={out['loss64'].item():.9f} status=ok")

# compare with golden vectors
def command_check(args):
	set_precision("fp32")
	gold, metadata = load(args.file)
	shape = {name: int(metadata[name]) for name in shape_of("small", 1)}
	model = Transformer(shape)
	model.load_state_dict({name: gold[name] for name in model.state_dict()})
	model.to(args.device)
	out = golden(model, gold["tokens"].long().to(args.device),
		gold["targets"].long().to(args.device))
	bad = 0
	for group, bound in (("logits", 2e-5), ("loss64", 1e-6), ("grad.", 2e-5),
			("step3.", 1e-6)):
		worst = max(((out[name].double() - gold[name].double()).norm()
			/ gold[name].double().norm()).item()
			for name in gold if name.startswith(group))
		bad += not worst <= bound
		print(f"{group:8} {worst:.2e} (bound {bound:.0e})")
	sys.exit(bad > 0)

# write golden vectors with PyTorch's own errors
def sampler(most):
	"""takes every n-th element, `most` at most; n is odd"""
	def keep(t):
		stride = -(-t.numel() // most) | 1
		return t.detach().flatten()[::stride].float().cpu().clone()
	return keep


def model_in(form, shape, weights, device):
	"""the model with these weights, and the tables of its own type"""
	torch.set_default_dtype(torch.float64 if form == "fp64" else torch.float32)
	with torch.device(device):
		model = Transformer(shape)
	torch.set_default_dtype(torch.float32)
	model.load_state_dict(weights)
	return model.to(torch.bfloat16) if form == "bf16" else model

# write errors in three forms of PyTorch
def command_errors(args):
	set_precision("fp32")
	torch.manual_seed(args.seed)
	shape = dict(context_length=args.context, vocab_size=args.vocabulary,
		d_model=args.d_model, num_heads=args.heads, num_layers=args.layers,
		d_ff=args.d_ff)
	with torch.device(args.device):
		model = with_gains(Transformer(shape))
	weights = {name: w.bfloat16().float().cpu()
		for name, w in model.state_dict().items()}
	batch = torch.randint(args.vocabulary, (2, args.batch, args.context))
	out = weights | {"tokens": batch[0].int(), "targets": batch[1].int()}
	tokens, targets = batch.to(args.device)
	for form in ("fp64", "fp32", "autocast", "bf16"):
		if form == "fp64" and args.reference == "fp32":
			continue
		model = None                         # room for the next
		model = model_in(form, shape, weights, args.device)
		made = vectors(model, tokens, targets, sampler(args.sample),
			torch.autocast(tokens.device.type, torch.bfloat16,
			enabled=form == "autocast"))
		prefix = "" if form == args.reference else form + "."
		out |= {prefix + name: t for name, t in made.items()}
	save(args.out, out, described(shape, batch_size=args.batch,
		sample=args.sample))

# read the command line of golden vectors
def main():
	parser, command = command_line("pytorch_golden", __doc__)
	device = "cuda" if torch.cuda.is_available() else "cpu"
	gold = command("gold", command_gold, context=512, batch=4, seed=1,
		device=device)
	gold.add_argument("--size", choices=SIZES, default="small")
	errors = command("errors", command_errors, vocabulary=4099, d_model=256,
		d_ff=688, layers=4, heads=4, context=128, batch=2, seed=1, sample=65536,
		device=device)
	errors.add_argument("--reference", choices=("fp64", "fp32"), default="fp64")
	for p in (gold, errors):
		p.add_argument("--out", required=True)
	command("check", command_check, device=device).add_argument("file")
	args = parser.parse_args()
	args.run(args)


if __name__ == "__main__":
	main()
