#!/usr/bin/env bash
# no circle of includes among modules, and none among folders
set -euo pipefail
. tests/base/check.sh
pairs=$(find src -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' |
	while read -r file; do
		module=${file#src/} && module=${module%.*}
		sed -n 's/^#include "\(.*\)\.[a-z]*".*/\1/p' "$file" |
			while read -r other; do echo "$other $module"; done
	done | sort -u)
modules=$(awk '$1 != $2' <<<"$pairs")
check 'there are includes' test "$(wc -l <<<"$modules")" -gt 200
sorts() { tsort >/dev/null; }
check 'no circle among modules' sorts <<<"$modules"
layers=' base device ops profile jit model train dist estimate '
layers+='bench cases experiments python '
upward=$(awk -v layers="$layers" '{
	sub("/.*", "", $1); sub("/.*", "", $2)
	if (index(layers, " " $1 " ") > index(layers, " " $2 " ")) print
}' <<<"$modules")
check "no layer includes from one above: $upward" test -z "$upward"
exit $failed
