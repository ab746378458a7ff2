# adapters.sh: sourced by tests, after check.sh; the cases of adapters_torch.py
adapter() { # adapter FUNCTION DEVICE CASE ...
	PYTHONPATH=src/python:tests/python PYTHONDONTWRITEBYTECODE=1 \
		python3 tests/python/adapters_torch.py "$@"
}
adapters() { # adapters FUNCTION DEVICE
	local on= calls='forgets threads'
	if [ "$2" = cuda ]; then
		on=' on the GPU' calls='threads streams devices'
		check 'a captured call is refused' adapter "$@" captures
	fi
	check "tensors of all kinds$on" adapter "$@" layouts empty gradients hooks
	check "many calls$on" adapter "$@" $calls
	check "autocast$on" adapter "$@" autocast
	check "compiled programs$on" adapter "$@" compiles operator
}
