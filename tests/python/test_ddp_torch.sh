#!/usr/bin/env bash
# test_ddp_torch.sh: data parallelism in PyTorch, through libsystems.so
. tests/python/torch.sh
ranks() { # ranks CASE RANKS [DEVICE]
	python3 tests/python/ddp_torch.py "$@"
}
loses_a_rank() {
	local said
	! said=$(ranks loses_a_rank 3 2>&1) || return 1
	grep -q 'rank 2' <<<"$said" && ! grep -q 'nothing was noticed' <<<"$said"
}
check 'two ranks train as one' ranks trains 2
check 'three ranks train as one' ranks trains 3
check 'parameters without gradient' ranks leaves_out 3
check 'passes that accumulate' ranks accumulates 2
check 'mistakes are refused' ranks refuses 2
check 'bf16 is rounded once' ranks rounds_once 2
check 'a lost rank is named' loses_a_rank
if has_gpus 1; then
	check 'two ranks train on the GPU' ranks trains 2 cuda
	check 'parameters without gradient on the GPU' ranks leaves_out 2 cuda
fi
if has_gpus 2; then
	check 'the host waits for no GPU' ranks waits_for_no_gpu 2 cuda
fi
exit $failed
