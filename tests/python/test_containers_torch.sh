#!/usr/bin/env bash
# test_containers_torch.sh: containers beside those of PyTorch, on models
. tests/python/torch.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
check 'containers train as those of PyTorch, on two, three and one rank' \
	python3 tests/python/containers_torch.py "$folder" cpu 2 3 1
if has_gpus 2; then
	rm -rf "${folder:?}"/*
	check 'and on GPUs, over NCCL' \
		python3 tests/python/containers_torch.py "$folder" cuda 2 1
fi
exit $failed
