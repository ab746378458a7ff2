#!/bin/bash
# test_browser.sh: the pages in a browser, 400 and 1400 pixels wide
. "$(dirname "$0")/helpers.sh"
browser=$(command -v chromium || command -v google-chrome) || exit 77
for tool in gnuplot xelatex pdftocairo; do
	command -v $tool >/dev/null || exit 77
done
list() { [ $# -eq 0 ] || printf '"%s", ' "$@"; }
url() {		# url PATH: of a file whose folder may have any name
	printf 'file://'
	sed 's/%/%25/g; s/#/%23/g; s/?/%3F/g; s/"/%22/g; s/ /%20/g' <<<"$1"
}
look() {	# look FOLDER [TERM...]: what the browser finds in its pages
	local pages=("$1"/*.html) at
	at=$(url "$(realpath "$1")")
	shift
	{
		echo '<!DOCTYPE html><iframe style="height:900px"></iframe>'
		echo "<pre></pre><script>const folder = \"$at/\","
		echo "pages = [$(list "${pages[@]##*/}")], terms = [$(list "$@")];"
		cat "$root/tests/weave/look.js"
		echo '</script>'
	} >look.html
	"$browser" --headless --no-sandbox --disable-gpu --enable-logging=stderr \
		--allow-file-access-from-files --user-data-dir="$folder/profile" \
		--virtual-time-budget=100000000 --dump-dom "$(url "$PWD")/look.html" \
		>dom 2>log
	{
		sed -n 's/^\(<pre>\)*look: //p' dom
		grep -o 'CONSOLE.*' log
	} >said
	[ "$(cat said)" = done ]
}
finds() {	# finds NAME WHAT FOLDER [TERM...]: the browser found it
	local name=$1 what=$2
	shift 2
	if look "$@"; then not_ok "$name"
	elif grep -q "$what" said; then ok "$name"
	else not_ok "$name"; fi
}
spoil() {	# spoil NAME FILE LINE WHAT
	rm -rf bad
	cp -r html bad
	echo "$3" >>"bad/$2"
	finds "$1" "$4" bad
}
make_document
printf '\n%s\nint f(char *s);\n@\n' \
	'<<src/a.c>>=' >>writeup.nw
bash "$weave" --html writeup.nw html >said 2>&1
if look html; then ok "small pages"; else not_ok "small pages"; fi
spoil "a page that is too wide" site.css 'main { width: 90rem }' 'sideways$'
spoil "code that is" site.css 'pre { width: 90rem }' 'sideways with its code'
spoil "pale text" site.css 'p { color: #aaa }' 'is pale in P'
spoil "a box without a key" site.js 'document.querySelectorAll("pre").forEach(
	(e) => { e.style = "width: 3em; overflow: auto"; e.tabIndex = -1; });' \
	'no key can scroll'
spoil "a script that fails" site.js 'nothing.at.all();' 'CONSOLE.*nothing'
finds "a term that is nowhere" 'does not find no such term' html 'no such term'
[ ! -e "$root/html/search.js" ] || if look "$root/html" TMA wgmma roofline \
	occupancy 'tile scheduler' 'persistent kernel' GEMM exp2 semaphore \
	'measured peak'; then ok "all pages of html/, and a search for ten terms"
else not_ok "all pages of html/, and a search for ten terms"; fi
finish
