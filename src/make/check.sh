#!/usr/bin/env bash
# check.sh: does everything that is committed come from this writeup.nw?
set -uo pipefail
export LC_ALL=C
failures=0
fail() { printf 'check: %s\n' "$*" >&2; failures=$((failures + 1)); }
mkdir -p build
work=$(mktemp -d build/check.XXXXXX)
trap 'rm -rf "$work"' EXIT

tangled() { # tangled DIR: its files, but for what Python leaves beside a module
	(cd "$1" && find src tests \( -path tests/golden -o -name __pycache__ \) \
		-prune -o -type f -print | sort)
}
if bash src/make/tangle.sh writeup.nw "$work/tree"; then
	for file in $(tangled "$work/tree"); do
		if [ ! -f "$file" ]; then
			fail "$file is missing; make tangle writes it"
		elif ! cmp -s "$file" "$work/tree/$file"; then
			fail "$file is not what writeup.nw tangles to"
		elif [[ $file == *.sh && ! -x $file ]]; then
			fail "$file has lost its executable bit"
		fi
	done
	for file in $(tangled .); do
		[ -f "$work/tree/$file" ] || fail "$file is not from writeup.nw"
	done
else
	fail 'writeup.nw does not tangle'
fi
committed=0
if git cat-file -e HEAD:writeup.nw 2>/dev/null &&
	git diff --quiet HEAD -- writeup.nw tables; then
	committed=1
	while read -r state file; do
		fail "$file is not as committed ($state), but writeup.nw is"
	done < <(git status --porcelain -- src tests)
fi
sources=$(bash src/make/source-digest.sh)
expect() { # expect PDF NAME
	local digest
	digest=$(pdfinfo "$1" | sed -n 's/.*source-digest=\([0-9a-f]\{16\}\).*/\1/p')
	[ "$digest" = "$sources" ] || fail "$2 was woven from other sources" \
		"(${digest:-without a digest}, now $sources); make writeup.pdf"
}
for pdf in writeup.pdf notes.pdf; do
	if [ -f $pdf ]; then
		expect $pdf $pdf
	else
		fail "$pdf is missing; make writeup.pdf"
	fi
	if [ $committed = 1 ]; then
		git show HEAD:$pdf >"$work/pdf" 2>/dev/null
		expect "$work/pdf" "the committed $pdf"
	fi
done
if command -v pandoc >/dev/null; then
	bash src/weave/weave.sh --lint writeup.nw || fail 'the lint complains'
else
	fail 'without pandoc the prose cannot be checked; make deps'
fi
while IFS=: read -r file lines; do
	[ "$lines" -le 500 ] || fail "$file has $lines lines, more than 500"
done < <(tangled . | xargs grep -cvE '^[[:blank:]]*(//.*)?$')
while read -r complaint; do
	fail "$complaint"
done < <(tangled . | grep -E '\.(c|h|cu|cuh)$' | xargs awk '
	FNR == 1 { start = 0 }
	/^[A-Za-z_].*\(/ && !/^[A-Z]+\(/ && !start {
		start = FNR
		pragmas = 0
		name = $0
		sub(/__launch_bounds__\([^()]*(\([^()]*\))*\)/, "", name)
		sub(/\(.*/, "", name)
		sub(/.*[ *]/, "", name)
	}
	/^[ \t]*(#pragma|\/\/)/ { pragmas++ }
	/^}/ && start && FNR - start - pragmas >= 60 {
		print FILENAME ":" start ": " name " has " \
			FNR - start - pragmas + 1 " lines, more than 60"
	}
	/^}/ || /[;}][ \t]*$/ && !/^[ \t]/ { start = 0 }')
if command -v clang-format >/dev/null; then
	while read -r complaint; do
		fail "$complaint"
	done < <(tangled . | grep '^tests/.*\.[ch]$' | while read -r file; do
		clang-format "$file" | awk -v name="$file" '
			{ sub(/[ \t]*\/[*\/].*/, ""); gsub(/[ \t]+/, " "); sub(/^ /, "") }
			{ line = words = $0; gsub(/ /, "", words) }
			NR == FNR { ours[line]; at[words] = FNR; next }
			!(line in ours) && words in at {
				print name ":" at[words] ": clang-format writes " line
			}' "$file" -
	done)
fi
read -r -a flags < <(sed -n 's/^WARNINGS [:+]= \(-.*\)/\1/p' src/make/build.mk |
	xargs)
openmp=$(gcc -print-file-name=include 2>/dev/null || true)
flags+=(-fsyntax-only -fopenmp -Isrc -I. -idirafter "$openmp")
compile() { # compile COMPILER FLAG: messages on standard output
	tangled . | grep '\.c$' | grep -v /cuda/ |
		xargs -n 8 -P "$(nproc)" "$1" "${flags[@]}" "$2" 2>&1
}
for compiler in gcc clang; do
	command -v "$compiler" >/dev/null || continue
	for real in -UREAL_IS_DOUBLE -DREAL_IS_DOUBLE; do
		compile "$compiler" "$real" >"$work/log"
		[ -s "$work/log" ] || continue
		head -n 40 "$work/log" >&2
		fail "the C code does not compile with $compiler $real"
	done
done
cuda=$(sed -n 's/^CUDA_HOME := //p' build/config.mk 2>/dev/null || true)
[ -z "$cuda" ] || tangled . | grep '/cuda/.*\.c$' | xargs -r gcc "${flags[@]}" \
	-DHAVE_CUDA -DCUDA_ARCH_BUILT='"sm_90a"' -isystem "$cuda/include" >&2 ||
	fail 'the host code for CUDA does not compile'
if [ $failures -gt 0 ]; then
	echo "check: $failures failed" >&2
	exit 1
fi
echo 'check: all is well'
