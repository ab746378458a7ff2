#!/usr/bin/env bash
# digest.sh: build/digest/PROGRAM.BACKEND is the digest of a program's code, and
# build/code/PROGRAM.BACKEND names the sources that it covers
set -euo pipefail
export LC_ALL=C
command -v gcc >/dev/null || { echo 'digest: gcc not found' >&2; exit 2; }
mkdir -p build/code build/digest
find src -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | sort >build/code/list
sed 's,^,build/code/,; s,/[^/]*$,,' build/code/list | sort -u | xargs -r mkdir -p
while read -r file; do
	[ "build/code/$file" -nt "$file" ] || echo "$file"
done <build/code/list | xargs -r gcc -w -fpreprocessed -dD -E -x c |
	sed -E -e 's/^(#define [A-Za-z0-9_]+) /\1=/' \
		-e 's/([-+])[[:space:]]+\1/\1@\1/g' -e 's/\\$//' \
		-e 's/[[:space:]]*([^A-Za-z0-9_[:space:]]|^|$)[[:space:]]*/\1/g' \
		-e 's/[[:space:]]+/ /g' |
	awk '
		/^#[0-9]+"src\// {
			path = "build/code/" substr($0, index($0, "\"") + 1)
			sub(/".*/, "", path)
			if (path != file) {
				close(file)
				file = path
				last = ""
			}
			$0 = ""
		}
		{
			blank = last ~ /[A-Za-z0-9_]/ && /^[A-Za-z0-9_]/ ? " " : ""
			printf "%s", blank $0 >file
		}
		/./ { last = substr($0, length($0)) }'
rm -f build/code/*.cpu build/code/*.cuda
sed 's,^,build/code/,' build/code/list | xargs -r sha256sum |
	awk -f src/weave/digest.awk
cd build/code
find . -name '*.cpu' -o -name '*.cuda' | xargs -r sha256sum |
	while read -r hash list; do
		echo "${hash:0:16}" | cmp -s - "../digest/$list" ||
			echo "${hash:0:16}" >"../digest/$list"
	done
