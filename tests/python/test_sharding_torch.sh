#!/usr/bin/env bash
# test_sharding_torch.sh: sharded optimizers and FSDP in PyTorch, through
# libsystems.so
. tests/python/torch.sh
ranks() { # ranks CASE RANKS [DEVICE]
	python3 tests/python/sharding_torch.py "$@"
}
check 'a sharded optimizer gives equal bits on two ranks' ranks optimizer 2
check 'and on more than there are parameters' ranks optimizer 5
check 'two ranks train with sharded weights' ranks fsdp 2
check 'three ranks train with sharded weights' ranks fsdp 3
check 'whole weights are few' ranks memory 2
check 'a forward pass leaves nothing' ranks leaves_nothing 2
check 'zero_grad forgets gradients that are not finished' ranks forgets 2
check 'momentum goes on where a parameter is frozen' ranks frozen 2
check 'hooks, computed weights, layers without one' ranks sees 2
check 'mistakes are refused' ranks refuses 2
check 'a module is wrapped again and again' ranks again 2
if has_gpus 1; then
	check 'two ranks train with sharded weights on GPUs' ranks fsdp 2 cuda
	check 'a sharded optimizer on GPUs' ranks optimizer 2 cuda
	check 'whole weights are few on GPUs' ranks memory 2 cuda
fi
exit $failed
