#!/usr/bin/env bash
# test_sharding_torch.sh: sharded optimizers and FSDP in PyTorch, through
# libsystems.so; COURSE='DIR ...': the course's tests too, in copies of these
. tests/weave/check.sh
export LIBSYSTEMS=$PWD/${BUILD:-build}/libsystems.so
export PYTHONPATH=$PWD/src/dist PYTHONDONTWRITEBYTECODE=1
[ -f "$LIBSYSTEMS" ] || exit 77         # there is none with SANITIZE=1
python3 -c 'import torch' 2>/dev/null || exit 77
ranks() { # ranks CASE RANKS
	python3 tests/dist/sharding_torch.py "$@"
}
course() { # course DIR
	local copy status=0
	copy=$(mktemp -d)
	cp -r "$1/tests" "$1/cs336-basics" "$1/pyproject.toml" "$copy"
	cp tests/dist/course_adapters.py "$copy/tests/adapters.py"
	(cd "$copy" && PYTHONPATH=$PYTHONPATH:$copy/cs336-basics python3 -m pytest \
		-p no:cacheprovider tests/test_sharded_optimizer.py tests/test_fsdp.py \
		--deselect 'tests/test_fsdp.py::test_fsdp_correctness[fp32]') || status=$?
	rm -rf "$copy"
	return $status
}
check 'a sharded optimizer gives equal bits on two ranks' ranks optimizer 2
check 'and on more than there are parameters' ranks optimizer 6
check 'two ranks train with sharded weights' ranks fsdp 2
check 'three ranks train with sharded weights' ranks fsdp 3
check 'whole weights are few' ranks memory 2
check 'mistakes are refused' ranks refuses 2
if python3 -c 'import pytest, einx, einops, jaxtyping' 2>/dev/null; then
	for dir in ${COURSE-}; do
		[ -f "$dir/tests/test_fsdp.py" ] || continue
		check "the course's tests in ${dir##*/}" course "$dir"
	done
fi
exit $failed
