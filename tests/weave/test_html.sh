#!/bin/bash
# test_html.sh: the pages for a browser, and the PDF of the same document
. "$(dirname "$0")/helpers.sh"
for tool in gnuplot xelatex pdftocairo; do
	command -v $tool >/dev/null || exit 77
done
script() {	# script FILE: run a Lua script of pandoc's
	pandoc -f markdown -L "$root/$1" -t native -o /dev/null /dev/null \
		>said 2>&1
	status=$?
}
pages() { bash "$weave" --html writeup.nw html 2>said >told; status=$?; }
check() { WEAVE_OUT=$1 script src/weave/pagecheck.lua; }
same() {	# same TEX PAGES PDF
	pdftotext -layout "$3" pdf.txt >said 2>&1
	status=$?
	[ $status -eq 0 ] || return
	TEX=$1 PAGES=$2 TEXT=pdf.txt script tests/weave/numbers.lua
}
says() {	# says NAME TEXT: it failed, and said so
	if [ $status -eq 1 ] && grep -q "$2" said; then ok "$1"
	else not_ok "$1 (status $status, expected $2)"; fi
}
write() {
	make_document
	add "## More {#sec-more}" \
		'![As [](#fig:curve), $\alpha_1$.](curve){.plot #fig:two data=bench}' \
		'::: {.drawing #fig:d}' '```{=latex}' '\begin{tikzpicture}' \
		'\draw (0,0) -- (1,1);' '\end{tikzpicture}' '```' '' 'A line.' ':::' \
		'See [](#fig:d), [](#tbl:bench), [](#eq:one), page [](#sec-one){.page}.' \
		'\begin{equation}x = 2\Bigl(y_1\Bigr)\label{eq:one}\end{equation}' \
		'word' ':   It has a meaning. [](#sec-more){.page}' \
		'[On paper]{.paper}[In a window]{.web} it is so, and [[f]] is called.' \
		"The machine's \`text(\"own user's\")\`{.lua} word."
	edit "s/^large/the large's/" tables/cpu/bench.tsv
	{
		printf '\n| a | b |\n|:--|--:|\n'
		for k in {1001..1040}; do
			printf '| `int(%d)`{.lua} | `fixed(%d / 7, 2)`{.lua} |\n' $k $k
		done
		printf '\n: Long.\n\n<<src/a.c>>=\nint f(char *s)\n{\n'
		printf '\treturn s[0] == %s && 1 < 2;\n}\n@ %%def f\n\n%s\n' "'\"'" \
			'<<src/b.c>>='
		printf 'int g = f("\\n{}");\n@\n\n# Two\n\n## Index {#sec-index}\n\n'
		printf '::: {.identifier-index}\n:::\n'
	} >>writeup.nw
}
write; pages; expect_good "pages are written"
check html; expect_good "and every link leads somewhere"
pdf; expect_good "the PDF of the same document"
same build/weave/book.tex html writeup.pdf
if [ $status -eq 0 ]; then ok "has the same numbers: $(cat said)"
else not_ok "has the same numbers"; fi
cp -r html bad; sed -i 's/1039/1093/' bad/sec-more.html
same build/weave/book.tex bad writeup.pdf
says "an altered number is noticed" "1093"
sed 's/1039/1093/' build/weave/book.tex >build/other.tex
cp build/weave/book.aux build/other.aux
same build/other.tex bad writeup.pdf
says "also if only the PDF differs" "1093 stands in a cell"
cp -r html/. bad; sed -i 's/Figure 1.3/Figure 1.4/' bad/sec-more.html
same build/weave/book.tex bad writeup.pdf
says "and an altered reference" "fig:d is 1.4"
holds() {	# holds NAME PATTERN PAGE
	if grep -q "$2" "html/$3"; then ok "$1"; else not_ok "$1"; fi
}
holds "code is folded and linked" '<a href="#c1">f</a>(<span' sec-more.html
holds "text for a browser" 'In a window it is' sec-more.html
holds "a reference and a formula in the words of a picture" \
	'alt="As Figure 1.1, α₁."' sec-more.html
holds "the apostrophe of a value" '>The machine’s own user’s word' sec-more.html
holds "and of a cell" '<td>the large’s' bench.html
holds "a formula" '<msub><mi>y</mi><mn>1</mn></msub>' sec-more.html
holds "the search knows a heading" '^\["2 Two",3,"two","h"\]' search.js
holds "the search knows a term" '^\["word",2,"term-word","t"\]' search.js
holds "the search knows an identifier" '^1 f`,$' search.js
holds "the search knows a chunk" '^2   src/a.c' search.js
awk '/`};$/ { exit }
	on { w = substr(w, 1, index(digits, substr($1, 1, 1)) - 1) substr($1, 2)
		print w, $2 }
	/^words: `/ { on = 1 }' digits=0123456789abcdefghijklmnopqrstuvwxyz \
	html/search.js >html/words
holds "the search knows the words" '^meaning C$' words
holds "the search knows their pages" '^measured BA$' words
rm html/words
mkdir -p bin
printf '#!/bin/sh\ncp "$SVG" "$3"\n' >bin/pdftocairo
chmod +x bin/pdftocairo
boxes() {	# boxes ATTRIBUTES
	printf '<svg>\n'
	for x in 1 5; do
		printf '<path %s d="M %d.123456 2 L %d 2 L %d 4 L %d.123456 4 Z ' "$1" \
			$x $((x + 2)) $((x + 2)) $x
		printf 'M %d.123456 2 "/>\n' $x
	done
	printf '</svg>\n'
}
for style in 'style=" stroke:none;fill:red;"' \
	'fill-rule="nonzero" fill="red" fill-opacity="1"'; do
	boxes "$style" >boxes.svg
	SVG=boxes.svg PATH=$PWD/bin:$PATH pages
	holds "boxes in one path" \
		"^<path $style d=\"M1.12 2H3V4H1.12Z M5.12 2H7V4H5.12Z\"/>$" \
		figures/cpu-curve.svg
done
pages
break_page() {	# break_page NAME SED_SCRIPT COMPLAINT
	cp -r html/. bad
	sed -i "$2" bad/bench.html bad/sec-more.html
	check bad; says "$1" "$3"
}
break_page "a link to no label" 's/#tbl:bench"/#tbl:other"/' "nowhere: .*other"
break_page "a link to no page" 's/"sec-more.html"/"more.html"/' "nowhere: more"
break_page "a script from elsewhere" 's/"site.js"/"https:\/\/a.org\/b.js"/' \
	"leaves the folder"
break_page "a label that stands twice" 's/id="fig:curve"/id="tbl:bench"/' \
	"tbl:bench stands twice"
break_page "a picture without words" 's/alt="[^"]*"/alt=""/' "no words"
break_page "a table that is not closed" 's/<.table>//' "1 <table> and 0 </table>"
break_page "two headings" 's/<h1/<h1><.h1><h1/' "not one heading"
break_page "a page without a title" 's/<title>[^<]*/<title>/' "no title"
break_page "a page without a language" 's/<html lang="en">/<html>/' "no language"
break_page "TeX that is left" 's/<h1/\\textbf{x}<h1/' 'a stray "TeX"'
break_page "a control character" 's/<h1/\x10<h1/' 'a stray "\\16"'
head -c 999000 /dev/zero | tr '\0' x >bad/figures/cpu-curve.svg
check bad; says "a heavy page" "bench.html: has a megabyte"
head -c 1000000 /dev/zero | tr '\0' x >bad/figures/cpu-curve.svg
check bad; says "a heavy file" "cpu-curve.svg: has a megabyte"
rm -r bad
cp -r html first
edit 's/, 2, 0.1)/, 3, 0.1)/'; pages
expect "a false claim" 1 "$(line_of '[The backward')" "claim is false"
write; rm tables/cpu/bench.tsv; pages; says "a table that is gone" bench
if diff -r html first >/dev/null; then ok "both leave the old pages"
else not_ok "both leave the old pages"; fi
write; add 'So \nothing here.' 'And $\nothing{x}$.'; pages
says "a command without HTML" 'there is no HTML for .nothing'
says "a formula without MathML" 'no MathML for .*nothing'
write; rm html/search.js; pages
if [ $status -eq 2 ] && [ -e html/index.html ]; then ok "a strange folder is kept"
else not_ok "a strange folder is kept"; fi
digest() {	# digest FILE: of the sources it was woven from
	grep -o -m 1 'digest[=" a-z]*[0-9a-f]\{16\}' "$1" | grep -o '[0-9a-f]*$'
}
html=$root/html book=$root/build/weave/book.tex paper=$root/writeup.pdf
if [ -e "$html/search.js" ]; then
	check "$html"; expect_good "every link of the pages in html/"
fi
woven=$(digest "$html/index.html" 2>said)
if [ -z "$woven" ] || [ "$(digest "$book" 2>said)" != "$woven" ] ||
	[ "$(digest <(pdfinfo "$paper" 2>said))" != "$woven" ]; then
	echo "ok - html/ and writeup.pdf # SKIP they are not of the same sources"
else
	same "$book" "$html" "$paper"
	[ $status -eq 0 ] && ok "html/ and writeup.pdf: $(cat said)" ||
		not_ok "html/ and writeup.pdf have the same numbers"
fi
finish
