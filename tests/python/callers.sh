# callers.sh: sourced by tests, after torch.sh; the cases of callers_torch.py
callers() { # callers FUNCTION DEVICE
	local on= calls=threads
	caller() { python3 tests/python/callers_torch.py "$@"; }
	if [ "$2" = cuda ]; then
		on=' on the GPU' calls='captures threads streams devices'
	fi
	check "tensors of all kinds, many calls$on" caller "$@" layouts empty \
		gradients hooks $calls
	check "autocast and compiled programs$on" caller "$@" autocast compiles \
		operator
}
