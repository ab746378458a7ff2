#!/usr/bin/env bash
# torch_bf16_randn.sh: torch 2.11.0, random numbers in bf16 and fp16 on a CPU
#
# torch.randn on a CPU computes the two uniform numbers of a Box-Muller pair, and
# their logarithm, in the type of the result.  A uniform number in bf16 is one of
# 256.  So with 16 elements or more
#   - no number lies outside of about 3.33 = sqrt(2 log 256), where 0.09 % should;
#     in fp16 it is 3.90 = sqrt(2 log 2048);
#   - six in a thousand are zeros, which no normal distribution has;
#   - the standard deviation is 0.993.
# With fewer than 16 elements other code draws in double precision, and has neither
# bound nor zeros.  A Linear(dtype=torch.bfloat16) starts with 256 distinct weights.
# Tests that draw their input so see no outlier, and inf times a zero where they
# expect inf.  Numbers drawn in fp32 and rounded have nothing of this.
#
# Seen, of 4,194,304 numbers:
#     bfloat16: largest 3.33, zeros 0.00598, deviation 0.993
#     float16: largest 3.90, zeros 0.00072, deviation 0.998
#     bfloat16, 15 at a time: largest 5.19, zeros 0.00000, deviation 1.000
#     bfloat16, rounded from float32: largest 5.41, zeros 0.00000, deviation 1.000
#     distinct weights of Linear(1024, 1024): 256 in bfloat16
#
# Downloads about 3 GB into a temporary folder.
set -euo pipefail
. "$(dirname "$0")/torch"
cat >"$work/drawn.py" <<'END'
import sys
import torch

N = 1 << 22
changed = False

def drawn(name, x, bounded, has_zeros):
	global changed
	largest, x = x.abs().max().item(), x.double()
	zeros = (x == 0).double().mean().item()
	print(f"{name}: largest {largest:.2f}, zeros {zeros:.5f}, "
		f"deviation {x.std().item():.3f}")
	changed |= (largest < 4) != bounded or (zeros > 1e-4) != has_zeros

torch.manual_seed(0)
drawn("bfloat16", torch.randn(N, dtype=torch.bfloat16), True, True)
drawn("float16", torch.randn(N, dtype=torch.float16), True, True)
drawn("bfloat16, 15 at a time", torch.cat([torch.randn(15, dtype=torch.bfloat16)
	for i in range(N // 15)]), False, False)
drawn("bfloat16, rounded from float32", torch.randn(N).to(torch.bfloat16), False,
	False)
weight = torch.nn.Linear(1024, 1024, dtype=torch.bfloat16).weight
distinct = weight.unique().numel()
print(f"distinct weights of Linear(1024, 1024): {distinct} in bfloat16")
sys.exit(changed or distinct != 256)
END
"$work/venv/bin/python" "$work/drawn.py"
echo 'torch behaves as described'
