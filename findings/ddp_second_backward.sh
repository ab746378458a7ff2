#!/usr/bin/env bash
# ddp_second_backward.sh: torch 2.11.0, DistributedDataParallel
#
# The gradients of one forward and one backward pass become means over the ranks.
# After two forward passes only the first of two backward passes is reduced; what
# the second adds stays a rank's own, and so the ranks' weights part at the next
# step.  A backward pass that is run twice on a kept graph does the same.  There
# is no error and no warning, also with TORCH_DISTRIBUTED_DEBUG=DETAIL.  The same
# losses added before one backward pass, or each followed by its backward pass,
# are reduced whole.  FSDP2 (fully_shard) reduces all four.
#
# Seen, for a weight of one element with inputs 1 and 100 on rank 0, 2 and 200 on
# rank 1, whose mean gradient is 151.5, or 3 for the kept graph:
#     added: 151.5 on rank 0, 151.5 on rank 1
#     one after the other: 151.5 on rank 0, 151.5 on rank 1
#     forward, forward, backward, backward: 101.5 on rank 0, 201.5 on rank 1
#     backward twice: 2.5 on rank 0, 3.5 on rank 1
#
# Downloads about 3 GB into a temporary folder.
set -euo pipefail
. "$(dirname "$0")/torch"
cat >"$work/passes.py" <<'END'
import os
import sys
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

def added(f, a, b):
	(f(a) + f(b)).backward()

def alternating(f, a, b):
	f(a).backward()
	f(b).backward()

def forwards_first(f, a, b):
	first, second = f(a), f(b)
	first.backward()
	second.backward()

def kept(f, a, b):
	loss = f(a)
	loss.backward(retain_graph=True)
	loss.backward()

CASES = (("added", added, [151.5, 151.5]),
	("one after the other", alternating, [151.5, 151.5]),
	("forward, forward, backward, backward", forwards_first, [101.5, 201.5]),
	("backward twice", kept, [2.5, 3.5]))

def rank_main(rank, folder, seen):
	os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
	dist.init_process_group("gloo", init_method=f"file://{folder}/meeting",
		rank=rank, world_size=2)
	for i, (_, passes, _) in enumerate(CASES):
		layer = torch.nn.Linear(1, 1, bias=False)
		model = DistributedDataParallel(layer)
		passes(lambda x: model(torch.tensor([[x * (rank + 1)]])).sum(), 1., 100.)
		seen[2 * i + rank] = layer.weight.grad.item()
	dist.destroy_process_group()

if __name__ == "__main__":
	seen = mp.get_context("spawn").Array("d", 2 * len(CASES))
	mp.spawn(rank_main, (sys.argv[1], seen), nprocs=2)
	for i, (name, _, _) in enumerate(CASES):
		print(f"{name}: {seen[2 * i]:g} on rank 0, {seen[2 * i + 1]:g} on rank 1")
	sys.exit(any(list(seen[2 * i:2 * i + 2]) != expected
		for i, (_, _, expected) in enumerate(CASES)))
END
"$work/venv/bin/python" "$work/passes.py" "$work"
echo 'torch behaves as described'
