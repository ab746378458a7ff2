#!/bin/bash
# test_prose.sh: labels, answers, typed numbers, figures, chunks, whole weaves
. "$(dirname "$0")/helpers.sh"
make_document; add "## Two {#sec-one}"; lint
expect "a duplicate label" 1 "$(line_of '## Two')" "sec-one stands twice"

make_document; add 'An $x\label{eq:x}$ is' 'no $y\label{eq:x}$.'; lint
expect "a duplicate label of an equation" 1 "$(line_of 'no $y')" \
	"eq:x stands twice"

make_document; add "See [](#sec-none)."; lint
expect "an unknown cross reference" 1 "$(line_of sec-none)" "label sec-none"
make_document; add '[]{.solves problem="bench bunch"}'; lint
expect "a solution of none" 1 "$(line_of 'bench bunch')" "solves bunch"
make_document; add "::: note" "Open."; lint
expect "a division that is not closed" 1 "$(line_of '::: note')" "not closed"
make_document
add '```{.sh}' "Open." "" '<<src/a.c>>=' 'int x;' "@" '```' "Closed." '```'; lint
expect "a block that is not closed" 1 "$(line_of '{.sh}')" "not closed"
answered() {	# answered SECOND_ANSWER...
	make_document
	add "::: {.glance}" ":::" "::: {.question}" "(a) Which?" "" "(b) Why?" ":::" \
		'::: {.answer part="a"}' "[This one.]{.glance}" ":::" "$@"
	lint
}
answered '::: {.answer part="b"}' "[Because.]{.glance} And so on." ":::"
expect_good "a question with its answers"
answered
expect "a part without an answer" 1 "$(line_of .question)" "(b) has no answer"
answered '::: {.answer part="b"}' "Because." ":::"
expect "an answer without a short form" 1 "$(line_of 'part="b"')" "needs a"
answered '::: {.answer part="b"}' "[Because.]{.glance}" ":::" \
	'::: {.answer part="c"}' "[Not.]{.glance}" ":::"
expect "an answer to no question" 1 "$(line_of 'part="c"')" "(c) was not asked"

make_document
add "::: {.question}" "Which edition?" "" "(2026) The new one." ":::"; lint
expect "an item without a letter" 1 "$(line_of .question)" "(a) to (z)"
long() {	# long ANSWER...
	make_document
	add '::: {.question sentences="a=1 b=2"}' "(a) Which?" "" "(b) Why?" ":::" \
		'::: {.answer part="b"}' "[No.]{.glance}" ":::" \
		'::: {.answer part="a"}' "$@" ":::"
	lint
}
long "[See p. [7.5]{.given}, i.e. here.]{.glance} And there." \
	$'| size | time |\n|:--|--:|\n| one | short |\n\n: Two. Columns.'
expect_good "an answer with one sentence more than asked for, and a table"
long "[One.]{.glance} Two." "" "Three."
expect "an answer that is too long" 1 "$(line_of 'part="a"')" \
	"bench has 3 sentences, and 1 are asked for"
make_document
add "::: {.exercise}" "Why?" ":::" "::: {.solution}" "So." ":::" \
	"::: {.rule}" "Measure." ":::" "::: {.rules}" ":::" "::: {.solutions}" ":::"
lint
expect_good "an exercise with its solution, and a rule"
make_document; add "::: {.exercise}" "Why?" ":::"; lint
expect "an exercise alone" 1 "$(line_of .exercise)" "needs a solution"
make_document; add "::: {.solution}" "So." ":::"; lint
expect "a solution alone" 1 "$(line_of .solution)" "without an exercise"
make_document; add "The pass" "takes 3.5 times" "as long."; lint
expect "a typed number" 1 "$(line_of '3.5')" "typed number 3.5"

make_document; add 'So $x = 1.5$ holds.'; lint
expect "a typed decimal in a formula" 1 "$(line_of '1.5')" "typed number 1.5"

make_document
add 'Words: fp32, H100, 16-bit, C11, [10,000]{.given}, $2^3$, `1.5`.' \
	'::: given' 'Some 99.' ':::'; lint
expect_good "given numbers, words, code and integers in formulas pass"
make_document; rm src/plots/curve.gp; lint
expect "a missing figure script" 1 "$(line_of curve)" "no src/plots/curve.gp"

make_document; edit 's/^!\[The curve.*/& More./'; lint
expect "text beside a figure" 1 "$(line_of curve)" "text beside a figure"

make_document
add '::: {.drawing}' '```{=latex}' '\begin{tikzpicture}\end{tikzpicture}' '```' \
	'' 'A caption.' ':::'; lint
expect "a drawing without a label" 1 "$(line_of '.drawing')" "needs a label"

make_document
add '::: {.drawing #fig:d}' '```{=latex}' '\begin{tikzpicture}\end{tikzpicture}' \
	'```' '' 'A caption.' ':::' '' 'See [](#fig:d).'; lint
expect_good "a drawing"

make_document
add '::: {.drawing #fig:d src=nowhere}' 'A caption.' ':::' '' 'See [](#fig:d).'
lint
expect "a drawing without a source" 1 "$(line_of nowhere)" "needs a label"

make_document
add '`int(constant("src/plots/curve.gp", "NOTHING"))`{.lua}'; lint
expect "a constant that is not there" 1 "$(line_of NOTHING)" \
	"curve.gp does not have NOTHING"

make_document
printf '\n| a | b |\n|:--|--:|\n| x | y |\n\n: All. {#tbl:all}\n' >>writeup.nw
add 'See [](#tbl:all).'; lint
expect_good "a label of a table in Markdown"
add '# More {#tbl:all}'; lint
expect "and one that stands twice" 1 "$(line_of '# More')" \
	"first on line $(line_of '{#tbl:all}')"
cat >newer.lua <<'END'
package.path = os.getenv("WEAVE") .. "/?.lua;" .. package.path
local tables = require "tables"
function Table(t)
	t.attr = pandoc.Attr("tbl:new", {}, {line = "7"})
	print(tables.label(t))
end
END
if printf '| a |\n|:--|\n| x |\n\n: All.\n' | WEAVE=${weave%/*} pandoc \
	-f markdown -L newer.lua -t native -o /dev/null 2>said |
	grep -qx 'tbl:new.7'
then ok "a label that the table has"
else not_ok "a label that the table has"; fi
with_gain() {	# with_gain GAIN: of the second row
	make_document
	edit "s/\tok/\t1.5\tok/; s/\tstatus/\tgain\tstatus/
		\$s/1.5/$1/" tables/cpu/bench.tsv
}
for bad in nan -nan NaN inf; do
	with_gain $bad; edit 's/"bwd_ms"/"gain"/' src/plots/curve.gp; lint
	expect "a point at $bad" 1 "$(line_of curve)" \
		"tables/cpu/bench.tsv:11: gain is $bad"
done
with_gain nan; lint
expect_good "not a number where nothing is drawn"
make_document; printf '\n<<a.c>>=\n%090d\n@\n' 0 >>writeup.nw; lint
expect "a line that is too long" 1 "$(line_of 0000)" "90 columns"

make_document; add 'a << b'; lint
expect "chunk brackets in prose" 2 "$(line_of 'a <<')" "unescaped"
mkdir noweb
for tool in markup finduses; do
	printf '#!/bin/sh\necho %s $# >>used\nexec %s/%s "$@"\n' $tool \
		"${NOWEB:-/usr/lib/noweb}" $tool >noweb/$tool
	chmod +x noweb/$tool
done
make_document; NOWEB=$PWD/noweb lint
if [ $status -eq 0 ] &&
	[ "$(sort used | tr '\n' ' ')" = "finduses 1 markup 2 " ]
then ok "noweb in another folder"
else not_ok "noweb in another folder"; fi
if ! command -v xelatex >/dev/null || ! command -v gnuplot >/dev/null; then
	echo "ok - the whole weave # SKIP xelatex or gnuplot is missing"
	finish
fi
make_document
add "See [](#sec-one), page [](#sec-one){.page}." '```{=latex}' '\part{Two}' '```'
pdf; expect_good "a PDF is made"
made='writeup.pdf: [1-9][0-9]* pages; tables: '
if grep -qx "${made}0 measured here, 1 recorded (1 cpu)" told
then ok "one line says what was made"
else cat told >>said; not_ok "one line says what was made"; fi
make_table local course 10.0
edit 's/^# digest: .*/# digest: 1/' tables/local/bench.tsv; pdf
if grep -qx "${made}1 measured here, 0 recorded; 1 made with earlier code" told
then ok "and whose tables are shown"
else cat told >>said; not_ok "and whose tables are shown"; fi
rm -r tables/local; add 'Call `__wait_all()`.'; pdf
if grep -q 'nwto{Chapter}{sec-one}, page .pageref{sec-one}\.' build/weave/book.tex
then ok "a reference, and a page alone"
else not_ok "a reference, and a page alone"; fi
if grep -q 'nwcode{.nwus{}.nwus{}wait._all' build/weave/book.tex
then ok "a name is not broken where it begins"
else not_ok "a name is not broken where it begins"; fi
mv writeup.pdf first.pdf
rm -rf build/weave figures; pdf
if cmp -s first.pdf writeup.pdf; then ok "and again, byte for byte"
else not_ok "and again, byte for byte"; fi
mkdir -p home/.local/share/pandoc
printf '%s\n' 'set decimalsign ","' 'set logscale x 10' 'set title "mine"' \
	'set locale' >home/.gnuplot
echo 'error "this is read"' >home/.local/share/pandoc/init.lua
rm -rf build/weave figures
(
	export HOME=$PWD/home GNUTERM=dumb
	unset XDG_DATA_HOME
	pdf
	exit $status
)
if cmp -s first.pdf writeup.pdf; then ok "and for a user with settings"
else not_ok "and for a user with settings"; fi

edit 's/, 2, 0.1)/, 3, 0.1)/'; pdf
if [ $status -eq 1 ] && cmp -s first.pdf writeup.pdf; then
	ok "a failed weave leaves the old PDF"
else not_ok "a failed weave leaves the old PDF"; fi
make_document
edit '1i ```{=latex}\n\\part{First}\n```\n'
add 'The rest is in [](#sec-rest).' '```{=latex}' '\part{Second}' '```' \
	'# Another {#sec-other}' 'Away.' '# The rest {#sec-rest}' 'Away, too.'
bash "$weave" --notes writeup.nw notes.pdf 2>said >told; status=$?
expect_good "the notes are made"
pdftotext notes.pdf notes.txt
if grep -q '§.3' notes.txt
then ok "a reference into the rest has its number there"
else not_ok "a reference into the rest has its number there"; fi
if grep -q 'Away' notes.txt
then not_ok "and the rest is left out"
else ok "and the rest is left out"; fi
make_document
edit '1i ```{=latex}\n\\part{First}\n```\n'
{
	printf '\n```{=latex}\n\\part{Second}\n```\n# Code {#sec-code}\n'
	for k in {1..40}; do
		printf '\nA chunk of some lines.\n\n<<tests/%d.c>>=\n' $k
		seq -f 'line(%g);' $((6 + k * 7 % 23))
		echo @
	done
} >>writeup.nw
pdf; expect_good "much code"
pdftotext -bbox writeup.pdf words.xml
if awk -F '"' '/>line\([0-9]+\);</ { n++; if ($8 > 239 / 25.4 * 72) low = $8 }
	END { exit low > 0 || n < 600 }' words.xml
then ok "stays on its pages"
else not_ok "stays on its pages"; fi
make_document
mkdir -p src/drawings
echo '\begin{tikzpicture}\node{\Rows};\end{tikzpicture}' >src/drawings/box.tex
add '::: {.drawing #fig:box src=box values="{Rows=64}"}' 'A box.' ':::' ''
add 'See [](#fig:box).'
pdf; expect_good "a drawing from a file, with a value"
touch -d '2 days ago' figures/drawings/box.pdf; pdf
drawn() { # drawn FIGURE: by the last weave
	[ -z "$(find "figures/$1.pdf" -mtime +0)" ]
}
if ! drawn drawings/box
then ok "what is unchanged is not drawn again"
else not_ok "what is unchanged is not drawn again"; fi
edit 's/Rows=64/Rows=65/'; pdf
if drawn drawings/box
then ok "a new value is drawn"
else not_ok "a new value is drawn"; fi
edit 's/{Rows=65}/{Lines=65}/'; pdf
expect "an error in a drawing" 1 "$(line_of Lines)" \
	"drawing box: Undefined control"
mkdir bin
make_document; pdf; touch -d '2 days ago' figures/cpu/curve.pdf; pdf
if ! drawn cpu/curve
then ok "an unchanged plot is not drawn again"
else not_ok "an unchanged plot is not drawn again"; fi
echo 'set xrange [0:100]' >>src/plots/style.gp; pdf
if drawn cpu/curve
then ok "what a plot loads counts"
else not_ok "what a plot loads counts"; fi
touch -d '2 days ago' figures/cpu/curve.pdf
edit 's/\t60.0\t/\t61.0\t/' tables/cpu/bench.tsv; pdf
if drawn cpu/curve
then ok "a plot's table counts"
else not_ok "a plot's table counts"; fi

# a gnuplot whose library writes nothing that can be read, and no TeX
printf '#!/bin/sh\necho >>runs\n%s "$@"\nsed -i s/Producer/Recudorp/ %s\n' \
	"$(command -v gnuplot)" 'figures/*/*.new' >bin/gnuplot
printf '#!/bin/sh\nexit 1\n' >bin/xelatex
chmod +x bin/gnuplot bin/xelatex
rm -r figures
for k in 1 2; do (PATH=$PWD/bin:$PATH pdf); done
if [ "$(grep -c '' runs)" = 1 ]
then ok "nor one that a newer library has written"
else not_ok "nor one that a newer library has written"; fi

make_document; echo 'plot nonsense' >>src/plots/curve.gp; pdf
expect "a broken figure script" 1 "$(line_of curve)" "curve.gp: .*nonsense"
make_document
sed -i 's/"bwd_ms"/&, "" using "fwd_ms":"none_ms"/' src/plots/curve.gp; pdf
expect "a column that a figure's table lacks" 1 "$(line_of curve)" \
	'no column with header "none_ms"'

make_document; add 'An error: \nosuchcommand here.'; pdf
expect "an error of TeX" 1 "$(line_of nosuchcommand)" "Undefined control"

make_document
add $'| a | b |\n|:--|:---|\n'"| c | $(printf 'word %.0s' {1..70})|"
pdf
if [ $status -eq 0 ] && grep -q 'warning: a table is too wide to be read$' said
then ok "a table that nobody can read"
else not_ok "a table that nobody can read"; fi

make_document
add '```{=latex}' '\makeatletter\ifdefined\moved\else\gdef\moved{0}\fi' \
	'\immediate\write\@auxout{\gdef\string\moved{\the\numexpr\moved+1}}' \
	'\makeatother' '```'; pdf
expect "references that move on" 1 1 "still move"
finish
