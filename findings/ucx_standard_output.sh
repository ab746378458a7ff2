#!/usr/bin/env bash
# ucx_standard_output.sh: UCX 1.22.0, a wheel of PyPI
#
# UCX carries the messages of MPICH, and often those of Open MPI.  What it warns
# of, and its errors too, stand on standard output, in the middle of what the
# program prints there; standard error has nothing of it.  A program that does no
# more than start MPI and print a line can print three: who reads the first line
# of it, or all, reads a complaint.  UCX_LOG_FILE=/dev/stderr sends them there.
#
# Seen:
#     without a transport of a name: lines on standard output: 1, on standard error: 0
#     UCX_LOG_FILE=/dev/stderr: lines on standard output: 0, on standard error: 1
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -q --no-deps --target packages libucx-cu12==1.22.0 \
	2>complaints || { cat complaints; exit 77; }
cat >start.py <<'END'
# starts UCX as an MPI does: for tagged messages
import ctypes
ucp = ctypes.CDLL("libucp.so.0")
config, context = ctypes.c_void_p(), ctypes.c_void_p()
features, tags = 1, 1
params = (ctypes.c_uint64 * 64)(features, tags)
assert ucp.ucp_config_read(None, None, ctypes.byref(config)) == 0
assert ucp.ucp_init_version(1, 14, params, config, ctypes.byref(context)) == 0
END
count() { # count WHAT VARIABLE...: sets out and err
	UCX_TLS=self,nothing env "${@:2}" python3 start.py >said 2>complaints
	out=$(grep -c UCX said || true) err=$(grep -c UCX complaints || true)
	echo "$1: lines on standard output: $out, on standard error: $err"
}
export LD_LIBRARY_PATH=$work/packages/libucx/lib
unset UCX_LOG_FILE UCX_LOG_LEVEL
count 'without a transport of a name' A=1
surprise=$((out > 0 && err == 0))
count UCX_LOG_FILE=/dev/stderr UCX_LOG_FILE=/dev/stderr
if [ $surprise = 1 ] && [ "$err" -gt 0 ] && [ "$out" = 0 ]; then
	echo 'UCX behaves as described'
else
	echo 'UCX does not behave as described'
	exit 1
fi
