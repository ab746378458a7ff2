#!/usr/bin/env bash
# cupti_version_without_driver.sh: CUPTI 13.3 does not know its own version where
# there is no driver
#
# cuptiGetVersion returns "the API version for this implementation of CUPTI".  Its
# header names one error, CUPTI_ERROR_INVALID_PARAMETER for a null pointer.  Up to
# CUPTI 13.1 the call needs nothing but the library, so a build can ask it on a
# machine without a GPU.  From CUPTI 13.3 on it fails there with 999,
# CUPTI_ERROR_UNKNOWN, and leaves the version as it was.  So a probe of a build
# that runs the call takes a good CUPTI for a broken one.
#
# Seen, on a machine without libcuda.so.1, with the wheels of nvidia-cuda-cupti:
#     12.4.127: result 0, version 22
#     13.1.115: result 0, version 130101
#     13.3.75: result 999, version 0
#     13.5.25: result 999, version 0
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
if python3 -c 'import ctypes; ctypes.CDLL("libcuda.so.1")' 2>/dev/null; then
	echo 'this machine has a driver, and the behaviour is that without one' >&2
	exit 2
fi
cat >version.py <<'END'
import ctypes, sys
version = ctypes.c_uint32(0)
result = ctypes.CDLL(sys.argv[1]).cuptiGetVersion(ctypes.byref(version))
print(f"result {result}, version {version.value}")
END
for package in nvidia-cuda-cupti-cu12==12.4.127 \
	nvidia-cuda-cupti==13.1.115 nvidia-cuda-cupti==13.3.75 \
	nvidia-cuda-cupti==13.5.25; do
	release=${package##*=}
	python3 -m pip download -q --no-deps -d "$release" "$package"
	python3 -m zipfile -e "$release"/*.whl "$release"
	library=$(find "$release" -name 'libcupti.so.*')
	echo "$release: $(python3 version.py "./$library")"
done | tee said
diff said - <<'END'
12.4.127: result 0, version 22
13.1.115: result 0, version 130101
13.3.75: result 999, version 0
13.5.25: result 999, version 0
END
echo 'CUPTI behaves as described'
