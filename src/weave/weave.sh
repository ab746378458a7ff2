#!/bin/bash
# weave.sh [--notes] FILE.nw OUT.pdf, or weave.sh --html FILE.nw FOLDER,
# or weave.sh --lint FILE.nw, or weave.sh --laws FILE.nw
set -u -o pipefail
export LC_ALL=C.UTF-8
usage() {
	echo "usage: weave.sh [--notes] FILE.nw OUT.pdf" >&2
	echo "       weave.sh --html FILE.nw FOLDER" >&2
	echo "       weave.sh --lint FILE.nw" >&2
	echo "       weave.sh --laws FILE.nw" >&2
	exit 2
}
here=$(dirname "$0")
export WEAVE_DIR=${WEAVE_DIR:-build/weave} WEAVE_MODE=full
case ${1-} in
--html) html=yes; shift;;
--notes) notes=yes WEAVE_MODE=notes WEAVE_DIR=$WEAVE_DIR/notes; shift;;
--lint) WEAVE_MODE=lint; shift; set -- "$@" -;;
--laws) WEAVE_MODE=laws; shift; set -- "$@" -;;
-*) usage;;
esac
[ $# -eq 2 ] || usage
source=$1 out=$2
[ -r "$source" ] || { echo "weave.sh: cannot read $source" >&2; exit 2; }
mkdir -p "$WEAVE_DIR" || exit 2
missing=0
need() {	# need COMMAND PACKAGE
	command -v "$1" >/dev/null && return
	echo "weave.sh: $1 not found; install the package $2" >&2
	missing=2
}
need "${NOWEB:-/usr/lib/noweb}/markup" noweb
need pandoc pandoc
need awk mawk
if [ $WEAVE_MODE != lint ] && [ $WEAVE_MODE != laws ]; then
	need gnuplot gnuplot-nox
	need xelatex texlive-xetex
	[ -z "${html-}" ] || need pdftocairo poppler-utils
	kpsewhich tikz.sty >/dev/null || need tikz.sty texlive-pictures
	if command -v fc-list >/dev/null; then
		fonts=,$(fc-list : family | tr '\n' ,)
		font() {	# font FAMILY PACKAGE
			case $fonts in *",$1,"*) return;; esac
			echo "weave.sh: font $1 not found; install the package $2" >&2
			missing=2
		}
		font "TeX Gyre Pagella" fonts-texgyre
		font "TeX Gyre Pagella Math" fonts-texgyre-math
		font "JetBrains Mono" fonts-jetbrains-mono
	fi
fi
[ $missing -eq 0 ] || exit $missing
reader=$WEAVE_DIR/reader.lua
printf 'PANDOC_SCRIPT_FILE = [[%s]]\ndofile(PANDOC_SCRIPT_FILE)\n' \
	"$here/reader.lua" >"$reader" || exit 2
pandoc() { command pandoc --data-dir="$WEAVE_DIR/none" "$@"; }
summary() {	# summary PAGES
	awk -F '\t' -v out="$out" -v pages="$1" '
		NR == 1 || $2 == "-" { next }
		$4 == "stale" { stale++ }
		$2 == "local" { here++; next }
		!($2 in from) { order[++n] = $2 }
		{ from[$2]++; recorded++ }
		END {
			for (i = 1; i <= n; i++)
				list = list (i > 1 ? ", " : " (") from[order[i]] " " order[i]
			if (!NR) { print out ": " pages " pages"; exit }
			printf "%s: %d pages; tables: %d measured here, %d recorded%s%s\n",
				out, pages, here, recorded, list (n ? ")" : ""),
				stale ? "; " stale " made with earlier code" : ""
		}' "$([ "${notes-}" ] && echo /dev/null ||
			echo "$WEAVE_DIR/tables.tsv")"
}
if [ $WEAVE_MODE = lint ]; then
	pandoc --quiet -f "$reader" -L "$here/filter.lua" -t native \
		-o /dev/null "$source" || exit 1
	exit 0
elif [ $WEAVE_MODE = laws ]; then
	pandoc --quiet -f markdown -M weave-file="$source" -L "$here/filter.lua" \
		-t native -o /dev/null /dev/null || exit 1
	exit 0
elif [ -n "${html-}" ]; then
	if [ -e "$out" ] && [ ! -e "$out/search.js" ]; then
		echo "weave.sh: $out exists and holds no pages" >&2
		exit 2
	fi
	export WEAVE_OUT=$WEAVE_DIR/html
	rm -rf "$WEAVE_OUT" && mkdir -p "$WEAVE_OUT" || exit 1
	pandoc --quiet -f "$reader" -L "$here/filter.lua" \
		-L "$here/pages.lua" -t html -o /dev/null "$source" || exit 1
	cp "$here"/site.css "$here"/site.js "$WEAVE_OUT" || exit 1
	pandoc -f markdown -L "$here/pagecheck.lua" -t native -o /dev/null \
		/dev/null || exit 1
	rm -rf "$out" && mv "$WEAVE_OUT" "$out" || exit 1
	summary "$(find "$out" -name '*.html' | wc -l)"
	exit 0
fi
pandoc --quiet -f "$reader" -L "$here/filter.lua" -L "$here/latex.lua" -s \
	--template "$here/template.tex" --top-level-division=chapter -t latex \
	-V source-digest="${SOURCE_DIGEST:-none}" ${notes:+-V notes=yes} \
	-o "$WEAVE_DIR/book.tex.new" "$source" || exit 1
mv "$WEAVE_DIR/book.tex.new" "$WEAVE_DIR/book.tex"
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1767225600} FORCE_SOURCE_DATE=1
moving() {	# all but the number of pages, which is lower for a draft
	cat "$WEAVE_DIR"/book.{aux,toc} 2>/dev/null | grep -v abspage@last | cksum
}
tex() {	# tex book|draft
	max_print_line=1000 xelatex -no-pdf -interaction=nonstopmode \
		-file-line-error -output-directory="$WEAVE_DIR" -jobname=book \
		"$WEAVE_DIR/$1.tex" >"$WEAVE_DIR/xelatex.out" 2>&1
}
moves() { [ -z "${failed-}" ] && [ "$before" != "$(moving)" ]; }
awk '/^\\nwlk?\{/ { sub(/\{.*/, "{0}{}") } !/^\\nwentry\{\\nwtarget/' \
	"$WEAVE_DIR/book.tex" >"$WEAVE_DIR/draft.tex"
[ -s "$WEAVE_DIR/book.aux" ] || tex draft
tex draft
for pass in 1 2 3 4 5; do
	before=$(moving)
	tex book || failed=1
	moves || break
done
settled=${failed-yes}
if moves; then
	echo "$source:1: TeX: after $pass passes references still move"
	failed=1
fi >"$WEAVE_DIR/complaints"
awk -v source="$source" -v settled="${settled#1}" -f "$here/texlog.awk" \
	"$WEAVE_DIR/book.tex" "$WEAVE_DIR/book.log" >>"$WEAVE_DIR/complaints" ||
	failed=1
cat "$WEAVE_DIR/complaints" >&2
if [ -n "${failed-}" ]; then
	rm -f "$WEAVE_DIR"/book.{aux,toc}
	[ -s "$WEAVE_DIR/complaints" ] || tail -n 5 "$WEAVE_DIR/xelatex.out" >&2
	exit 1
fi
xdvipdfmx -q -E -o "$WEAVE_DIR/book.pdf" "$WEAVE_DIR/book.xdv" || exit 1
cp "$WEAVE_DIR/book.pdf" "$out.new" && mv "$out.new" "$out" || exit 1
summary "$(sed -n 's/.*book.xdv (\([0-9]*\) pages.*/\1/p' "$WEAVE_DIR/book.log")"
