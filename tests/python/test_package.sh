#!/usr/bin/env bash
# test_package.sh: the package for PyTorch: built, looked into, installed, used
. tests/python/torch.sh
export TESTS=$PWD/tests/python
ready() {
	python3 - <<'END'
import importlib.util
import sys
import setuptools
import pip
import torch
sys.exit(not hasattr(torch.library, "register_vmap")
	or tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9)
	or int(setuptools.__version__.split(".")[0]) < 61
	or not any(map(importlib.util.find_spec,
	("setuptools.command.bdist_wheel", "wheel"))))
END
}
ready 2>/dev/null || exit 77
unset PYTHONPATH
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
builds() {
	python3 -m pip wheel ./python --no-deps --no-build-isolation --quiet \
		--wheel-dir "$folder/wheel" >"$folder/log" 2>&1 || {
		cat "$folder/log"
		return 1
	}
}
installs() {
	python3 -m pip install --no-deps --quiet --target "$folder/site" \
		"$folder"/wheel/*.whl
}
holds() {
	python3 - "$folder"/wheel/*.whl <<'END'
import re
import sys
import zipfile
names = zipfile.ZipFile(sys.argv[1]).namelist()
for want in (r"libsystems\.so", r"libsystems64\.so", r"_operators\..*so",
		r"_autograd_\w+\..*so", r"libsystems\.pc", r"py\.typed",
		r"include/libsystems/flash_attention\.h", r"ddp\.py", r"fsdp\.py"):
	found = [x for x in names if re.fullmatch("libsystems/" + want, x)]
	assert len(found) == 1, (want, found)
strange = [x for x in names if re.search(r"\.(cc|o|c)$|^(?!libsystems)", x)]
assert not strange, strange
END
}
package() { # package CASE ...
	(cd "$folder" && PYTHONPATH=$folder/site:$TESTS \
		python3 "$TESTS/package_torch.py" "$@")
}
module() {
	(cd "$folder" && PYTHONPATH=$folder/site python3 -m libsystems "$@")
}
says() { # says TEXT: and is everything all right?
	module >"$folder/said" && grep -qF "$1" "$folder/said"
}
ends() { # is the exit status 0, each time?
	local pids=() bad=0
	for _ in {1..16}; do
		module >/dev/null &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || bad=1
	done
	[ $bad = 0 ]
}
usage() {
	local status=0
	module --what 2>"$folder/said" || status=$?
	[ $status = 2 ] && grep -q usage "$folder/said"
}
version() {
	awk '$2 == "LIBSYSTEMS_VERSION" { print int($3 / 10000) "." \
		int($3 / 100) % 100 "." $3 % 100 }' src/ops/library.h
}
links() {
	cat >"$folder/try.c" <<'END'
#include <libsystems/adapter.h>
#include <libsystems/flash_attention.h>
#include <libsystems/library.h>
#include <libsystems/rmsnorm.h>
int main(void)
{
	float x[2] = { 3, 4 }, y[2], g[2] = { 1, 1 };
	const RmsnormShape s = { .rows = 1, .width = 2, .x_row = 2, .y_row = 2 };
	int32_t status = rmsnorm_forward(&s, y, 0, x, g);
	return libsystems_version() != LIBSYSTEMS_VERSION || status != RMSNORM_OK
		|| y[0] * 4 - y[1] * 3 > 1e-5f || y[0] < 0.8f || y[0] > 0.9f;
}
END
	# shellcheck disable=SC2046
	(export PKG_CONFIG_PATH
	PKG_CONFIG_PATH=$(module --pkg-config) &&
		[ "$(pkg-config --modversion libsystems)" = "$(version)" ] &&
		cc "$folder/try.c" -o "$folder/try" \
			$(pkg-config --cflags --libs libsystems) && "$folder/try")
}
check 'a wheel is built' builds
check 'it holds libraries, operators, headers and hints' holds
check 'it is installed' installs
check 'it checks itself' says 'check      float32 on cpu'
if has_gpus 1; then
	check 'on a GPU it ends without a fault, each time' ends
fi
check 'it names its version' says "libsystems $(version)"
check 'it refuses other options' usage
check 'gradients agree with differences in fp64' package gradients
check 'layouts and types' package layouts
check 'a compiled program' package compiles
check 'an exported program' package exports
check 'CUDA graphs, where there is a GPU' package graphs
check 'torch.func' package transforms
check 'mistakes are refused' package refuses
if command -v pkg-config >/dev/null; then
	check 'a program in C finds the library' links
fi
exit $failed
