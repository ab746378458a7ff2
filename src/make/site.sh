#!/usr/bin/env bash
# site.sh: site.sh DIR FILE: installs the package for PyTorch into DIR, or says
# why it does not; FILE has the version of PyTorch
set -euo pipefail
rm -rf "$1"
mkdir -p "$1"
if ! grep -q . "$2"; then
	echo '  site  no PyTorch and setuptools for python3, so no package for it'
elif echo "  site  $1: the package for PyTorch $(cat "$2")" &&
	! python3 -m pip install --no-build-isolation --no-deps --quiet \
		--target "$1" ./python >"$1.log" 2>&1; then
	grep -v '^ *$' "$1.log" | tail -n 1 | cut -c 1-300
	echo "  site  the package was not built: $1.log"
	rm -rf "$1/libsystems"
fi
