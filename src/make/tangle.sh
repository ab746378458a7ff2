#!/usr/bin/env bash
# tangle.sh: writes the files that a noweb document contains
#   tangle.sh DOCUMENT              in place, and lists them in build/tangled.mk
#   tangle.sh DOCUMENT DIR          under DIR
#   tangle.sh --lines DOCUMENT DIR  under DIR, C and CUDA with #line directives
set -euo pipefail
export LC_ALL=C
noweb=${NOWEB:-/usr/lib/noweb}
lines=0
[ "${1-}" != --lines ] || { lines=1; shift; }
document=$1 into=${2-}
mkdir -p build
work=$(mktemp -d build/tangle.XXXXXX)
trap 'rm -rf "$work"' EXIT

"$noweb/markup" -t "$document" |
	awk '/^@use [ <]/ { print "@text <<" substr($0, 6) ">>"; next } 1' \
	>"$work/stream"
awk -v document="$document" '
	BEGIN { line = 1; order = "sort -t: -k2,2n >&2" }
	/^@nl$|^@index nl$/ { line++ }
	/^@quote$/ { quoted = 1 }
	/^@endquote$/ { quoted = 0 }
	/^@defn / { note(defined, substr($0, 7)) }
	/^@use / && !quoted { note(used, substr($0, 6)) }
	END {
		for (name in used)
			if (!(name in defined))
				complain(used[name], name, "used but not defined")
		for (name in defined)
			if (name in used)
				continue
			else if (name ~ /^(src|tests)\/[A-Za-z0-9_.\/-]+$/ &&
					name !~ /^tests\/golden\//)
				print name
			else
				complain(defined[name], name, "defined but not used")
		close(order)
		exit bad
	}
	function note(seen, name) { if (!(name in seen)) seen[name] = line }
	function complain(line, name, what) {
		print document ":" line ": chunk \"" name "\" is " what | order
		bad = 1
	}' "$work/stream" | sort >"$work/files"
tree=${into:-$work/tree}
last='the end of a tangled file'
sed "s|^|$tree/|; s|/[^/]*\$||" "$work/files" | sort -u | xargs mkdir -p
{
	if [ $lines = 1 ]; then
		cat "$work/stream"
	else
		awk '
			NR == FNR && /^@nl$/ { text = "" }
			NR == FNR && /^@text / { text = text substr($0, 7) }
			NR == FNR && /^@use / && text ~ /[^ \t]/ { inside[substr($0, 6)] = 1 }
			NR == FNR && /^@use / { used[substr($0, 6)] = 1; text = text "x" }
			NR == FNR { next }
			{ print }
			/^@defn / { name = substr($0, 7); begins = 1 }
			/^@nl$/ && begins {
				begins = 0
				if (name in used ? !(name in inside) : again[name]++)
					printf "@text //@ %s\n@nl\n", name
			}' "$work/stream" "$work/stream"
	fi
	awk -v last="$last" '{
		printf "@begin code 0\n@defn %s\n@nl\n@text %s\n@nl\n", $0, last
		print "@end code 0"
	}' "$work/files"
} >"$work/marked"
write() { # write FLAGS...: the files whose names are on standard input
	mapfile -t names
	[ ${#names[@]} = 0 ] ||
		"$noweb/nt" -t8 "$@" "${names[@]/#/-R}" <"$work/marked" |
		(cd "$tree" && awk -v last="$last" -v names="${names[*]}" '
			BEGIN { split(names, file, " "); n = 1 }
			{ print >file[n] }
			$0 == last { close(file[n++]) }')
}
if [ $lines = 1 ]; then
	{ grep -E '\.(c|cu|h|cuh)$' "$work/files" || true; } | write -L
	{ grep -vE '\.(c|cu|h|cuh)$' "$work/files" || true; } | write
else
	write <"$work/files"
fi
whole=$( (cd "$tree" && xargs sed -s -n '$p' 2>&1) <"$work/files" |
	grep -cFx "$last" || true)
if [ "$whole" != "$(wc -l <"$work/files")" ]; then
	echo "tangle: files could not be written whole (is the disk full?)" >&2
	exit 1
fi
(cd "$tree" && xargs sed -s -i '$d') <"$work/files"
(cd "$tree" && xargs awk '
	FNR == 1 { finish(); file = FILENAME; style = comment(file) }
	/^[ \t]*\/\/@ / { mark = $0; next }
	{
		if (mark != "" && style != "")
			out = out heading(mark, $0)
		mark = ""
		out = out $0 "\n"
		last = $0
	}
	END { finish() }
	function comment(file) {
		return file ~ /\.(c|cc|cu|h|cuh)$/ ? "//" : file ~ /\.(awk|py)$/ ? "#" : \
			file ~ /\.lua$/ ? "--" : ""
	}
	function heading(mark, next_line,    indent, name, gap) {
		indent = mark
		sub(/\/\/@ .*/, "", indent)
		name = substr(mark, length(indent) + 5)
		gsub(/\[\[|\]\]/, "", name)
		if (indent == "" && last != "" && next_line != "")
			gap = "\n"
		if (name == before || name ~ /^(src|tests)\/[^ ]*$/ ||
				indent != "" && style != "//")
			return gap
		before = name
		return gap indent style " " name "\n"
	}
	function finish() {
		if (file != "") {
			printf "%s", out >file
			close(file)
		}
		out = last = mark = before = ""
	}') <"$work/files"
[ -z "$into" ] || exit 0
changed=0
while read -r file; do
	case $file in
	*.sh) chmod +x "$tree/$file"; [ ! -f "$file" ] || chmod +x "$file" ;;
	esac
	if ! cmp -s "$tree/$file" "$file"; then
		mkdir -p "${file%/*}"
		mv -f "$tree/$file" "$file"
		changed=$((changed + 1))
	fi
done <"$work/files"
{
	sed -n 's/^TANGLED += //p' build/tangled.mk 2>/dev/null || true
	git ls-files src tests 2>/dev/null || true
} | { grep -v '^tests/golden/' || true; } | sort -u |
	comm -23 - "$work/files" | while read -r file; do
	[ -f "$file" ] || continue
	rm -f "$file"
	rmdir -p --ignore-fail-on-non-empty "${file%/*}"
	echo "tangle: removed $file, which $document no longer contains"
done
sed 's/^/TANGLED += /' "$work/files" >"$work/tangled.mk"
mv -f "$work/tangled.mk" build/tangled.mk
echo "tangle: $(wc -l <"$work/files") files in $document, $changed changed"
