#!/usr/bin/env bash
# test_containers_torch.sh: containers beside those of PyTorch, on models
. tests/python/torch.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
check 'containers train as those of PyTorch, on two, three and one rank' \
	python3 tests/python/containers_torch.py "$folder" 2 3 1
exit $failed
