# callers.sh: sourced by tests, after torch.sh; the cases of callers_torch.py
callers() { # callers FUNCTION DEVICE
	local on= calls=threads
	caller() { python3 tests/python/callers_torch.py "$@"; }
	if [ "$2" = cuda ]; then
		on=' on the GPU' calls='threads streams devices'
		check 'a captured call' caller "$@" captures
	fi
	check "tensors of all kinds$on" caller "$@" layouts empty gradients hooks
	check "many calls$on" caller "$@" $calls
	check "autocast$on" caller "$@" autocast
	check "compiled programs$on" caller "$@" compiles operator
}
