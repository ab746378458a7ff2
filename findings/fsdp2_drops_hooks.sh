#!/usr/bin/env bash
# fsdp2_drops_hooks.sh: torch 2.11.0, fully_shard (FSDP2)
#
# fully_shard puts new parameters in the place of a module's.  Hooks that were
# registered on a weight before, with register_hook or with
# register_post_accumulate_grad_hook, stay with the old object and never run; so
# do attributes that a program has set on it.  Nothing is said, also on one rank.
# DistributedDataParallel keeps the parameters, and their hooks run.  Of hooks that
# are registered after fully_shard, that of register_post_accumulate_grad_hook runs;
# that of register_hook does not, because the weight which autograd sees is the
# gathered one.
#
# Seen, hooks that ran in a backward pass:
#     plain module: register_hook, post_accumulate
#     DistributedDataParallel: register_hook, post_accumulate
#     fully_shard, then hooks: post_accumulate
#     hooks, then fully_shard: none
#
# Downloads about 3 GB into a temporary folder.
set -euo pipefail
. "$(dirname "$0")/torch"
cat >"$work/hooks.py" <<'END'
import sys
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

BOTH = ["register_hook", "post_accumulate"]

def hook(layer, ran):
	layer.weight.register_hook(lambda g: ran.append(BOTH[0]))
	layer.weight.register_post_accumulate_grad_hook(lambda p: ran.append(BOTH[1]))

def ran_after(*steps):
	layer, ran = torch.nn.Linear(2, 2), []
	model = layer
	for step in steps:
		if step is hook:
			hook(layer, ran)
		else:
			model = step(layer)
	model(torch.ones(1, 2)).sum().backward()
	return ran

dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}/meeting",
	rank=0, world_size=1)
mesh = init_device_mesh("cpu", (1,))
def shard(layer):
	return fully_shard(layer, mesh=mesh)
CASES = (("plain module", [hook], BOTH),
	("DistributedDataParallel", [hook, DistributedDataParallel], BOTH),
	("fully_shard, then hooks", [shard, hook], BOTH[1:]),
	("hooks, then fully_shard", [hook, shard], []))
changed = False
for name, steps, expected in CASES:
	ran = ran_after(*steps)
	print(f"{name}: {', '.join(ran) or 'none'}")
	changed |= ran != expected
dist.destroy_process_group()
sys.exit(changed)
END
"$work/venv/bin/python" "$work/hooks.py" "$work"
echo 'torch behaves as described'
