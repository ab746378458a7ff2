#!/usr/bin/env bash
# digest.sh: build/digest/PROGRAM.BACKEND is the digest of a program's code, and
# build/code/PROGRAM.BACKEND lists what it covers: hash, file, name of each item
set -euo pipefail
export LC_ALL=C
tools=$(dirname "$0")
mkdir -p build/code build/digest
find src -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | sort >build/code/list
sed 's,^,build/code/,; s,/[^/]*$,,' build/code/list | sort -u | xargs -r mkdir -p
begins='"([^"\\]|\\.)*"|'\''([^'\''\\]|\\.)*'\''|\/\/|\/\*'
begins=${begins//\\/\\\\}         # awk -v takes one of two backslashes away
token='#?[A-Za-z_][A-Za-z0-9_]*'
token+='|\.?[0-9]([eEpP][-+]|[A-Za-z0-9_.])*'
token+='|"([^"\\]|\\.)*"|'\''([^'\''\\]|\\.)*'\'
token+='|<<=|>>=|\.\.\.|[-+*\/%&|^!=<>]=|&&|\|\||<<|>>|->|\+\+|--|::|##'
token+='|[^ \t]'
while read -r file; do
	[ "build/code/$file" -nt "$file" ] || echo "$file"
done <build/code/list | xargs -r awk -v begins="$begins" '
		FNR == 1 { printf "# 1 \"%s\"\n", FILENAME; inside = 0 }
		{ print without_comments() }
		function without_comments(    out, start) {
			for (;;) {
				if (inside && !(start = index($0, "*/")))
					return out
				if (inside)
					$0 = substr($0, start + 2)
				inside = 0
				if (!match($0, begins))
					return out $0
				start = substr($0, RSTART, 2)
				inside = start == "/*"
				out = out substr($0, 1, RSTART - 1)
				if (start == "//")
					return out
				out = out (inside ? " " : substr($0, RSTART, RLENGTH))
				$0 = substr($0, RSTART + RLENGTH)
			}
		}' |
	awk '
		/^# [0-9]+ "/ { print; next }
		/\\$/ { line = line substr($0, 1, length($0) - 1) " "; next }
		{ line = line $0 }
		line ~ /^[ \t]*#/ {
			sub(/^[ \t]*#[ \t]*/, "#", line)
			if (line !~ /^#define [A-Za-z0-9_]+\(/)
				sub(/^#define [A-Za-z0-9_]+/, "& =", line)
			line = line " \\"
		}
		line ~ /[^ \t]/ { print line }
		{ line = "" }' |
	sed -E "/^# [0-9]+ \"/b; s/$token/&\n/g" |
	awk '
		/^# [0-9]+ "src\// {
			path = "build/code/" substr($0, index($0, "\"") + 1)
			sub(/".*/, "", path)
			if (path != file) {
				if (file)
					close(file)
				file = path
				printf "" >file
			}
		}
		/^# [0-9]+ "/ { next }
		{ gsub(/^[ \t]+/, "") }
		/./ { print >file }'
rm -f build/code/*.cpu build/code/*.cuda
awk -f "$tools/items.awk" -f "$tools/digest.awk" build/code/list
cd build/code
find . -name '*.cpu' -o -name '*.cuda' | while read -r list; do
	hash=$(cut -d ' ' -f 1 "$list" | sort -u | sha256sum)
	echo "${hash:0:16}" | cmp -s - "../digest/$list" ||
		echo "${hash:0:16}" >"../digest/$list"
done
