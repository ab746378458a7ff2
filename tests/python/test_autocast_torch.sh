#!/usr/bin/env bash
# test_autocast_torch.sh: the types that PyTorch's autocast gives the model
. tests/python/torch.sh
export PYTHONPATH=$PYTHONPATH:src/experiments
check 'types under autocast' python3 - <<'END'
import torch
import pytorch_peer as peer
device = "cuda" if torch.cuda.is_available() else "cpu"
shape = dict(vocab_size=50, context_length=8, d_model=12, num_heads=2,
	d_ff=20, num_layers=1)
low, wide = torch.bfloat16, torch.float32
types, softmax = {}, peer.softmax
def watched(S):
	P = softmax(S)
	types["S"], types["P"] = S.dtype, P.dtype
	return P
peer.softmax = watched
model = peer.Transformer(shape).to(device)
for name, module in model.named_modules():
	def note(module, inputs, output, name=name):
		types[name.removeprefix("layers.0.")] = output.dtype
	module.register_forward_hook(note)
with torch.autocast(device, dtype=low):
	logits = model(torch.zeros(2, 8, dtype=torch.long, device=device))
	loss = peer.mean_loss(logits, torch.zeros(2, 8, dtype=torch.long,
		device=device))
wanted = {"token_embeddings": wide, "ln1": wide, "attn.q_proj": low,
	"attn.v_proj": low, "attn.rope": wide, "S": low,
	"P": wide if device == "cuda" else low, "attn.output_proj": low,
	"ln2": wide, "ffn.w1": low, "ffn.w3": low, "ffn.w2": low,
	"layers.0": wide, "ln_final": wide, "lm_head": low}
for name, dtype in wanted.items():
	assert types[name] == dtype, (name, types[name])
assert loss.dtype == wide
END
exit $failed
