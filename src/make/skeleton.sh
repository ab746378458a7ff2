#!/usr/bin/env bash
# skeleton.sh DIR [PROBLEMS]: writes the document as an assignment to the folder
# DIR, with the solutions of PROBLEMS alone
set -euo pipefail
export LC_ALL=C
dir=${1-} keep=${2-}
refuse() { echo "skeleton: $*" >&2; exit 2; }
[ -n "$dir" ] || refuse 'say where to: make skeleton DIR=../assignment'
if [ -e "$dir" ] && { [ ! -d "$dir" ] || [ -n "$(ls -A "$dir")" ]; }; then
	refuse "$dir is there and not an empty folder; nothing was written"
fi
mkdir -p build
work=$(mktemp -d build/skeleton.XXXXXX)
trap 'rm -rf "$work"' EXIT
awk -v keep="$keep" -v rows="$work/assignment.tsv" -f src/make/skeleton.awk \
	writeup.nw pass=2 writeup.nw >"$work/writeup.nw"
new=$work/new
mkdir -p "$new/tests"
cp "$work/writeup.nw" "$work/assignment.tsv" Makefile "$new/"
cp -r tests/golden "$new/tests/"
awk '/^### / {
		on = /[#]sec-skeleton-student/
		sub(/^###/, "#")
		sub(/ *\{#.*/, "")
	}
	on { gsub(/\[\[|\]\]/, "`"); print }' writeup.nw >"$new/START.md"
for file in README.md LICENSE .gitignore .clang-format tables figures; do
	[ ! -e "$file" ] || cp -r "$file" "$new/"
done
rm -rf "$new/tables/local" "$new/figures/local"
tangle=$PWD/src/make/tangle.sh
(cd "$new" && bash "$tangle" writeup.nw)
mkdir -p "$dir"
cp -a "$new/." "$dir"
awk -F '\t' -v dir="$dir" 'NR > 1 { n++; points += $2 }
	END { printf "skeleton: %s: %d problems of %d points to solve, listed in " \
		"assignment.tsv\n", dir, n, points }' "$dir/assignment.tsv"
