#!/usr/bin/env bash
# package.sh: package.sh DIR LIBRARY...: libraries, headers, and a file for
# pkg-config, in DIR
set -euo pipefail
into=$1
headers='src/ops/flash_attention.h src/ops/rmsnorm.h src/ops/library.h
	src/dist/adapter.h'
mkdir -p "$into/include/libsystems"
cp "${@:2}" "$into"
# shellcheck disable=SC2086
cp $headers "$into/include/libsystems"
version=$(awk '$2 == "LIBSYSTEMS_VERSION" { print int($3 / 10000) "." \
	int($3 / 100) % 100 "." $3 % 100 }' src/ops/library.h)
cat >"$into/libsystems.pc" <<END
prefix=\${pcfiledir}
Name: libsystems
Description: attention, RMSNorm and data parallelism
Version: $version
Cflags: -I\${prefix}/include
Libs: -L\${prefix} -lsystems -Wl,-rpath,\${prefix}
END
