#!/bin/bash
# test_values.sh: values in files of their own, in a tiny document and in ours
. "$(dirname "$0")/helpers.sh"
values() {	# values LINE ...
	make_document
	mkdir -p src/values
	printf '%s\n' "$@" >src/values/sec-later.lua
	add "## Later {#sec-later}" 'It takes `ms(twice)`{.lua}.'
	lint
}
fault() { expect "$1" 1 "$(line_of '{#sec-later}')" "$2"; }
values 'twice = 2*small.fwd_ms'
expect_good "a file of values"
values 'twice = 2*small.fwd_ms' 'thrice = three()'
fault "a fault in a file of values" "src/values/sec-later.lua:2: "
values 'twice = 2*small.fwd_ms' 'thrice = nil'
fault "a value that is nothing" "thrice has no value"
values 'twice = 2*small.fwd_ms' 'thrice = 3'
fault "a value that nothing uses" "sec-later.lua:2: thrice is used nowhere"
values 'twice = 2*small.fwd_ms'
add 'And `ms(twice)`{.lua:.2}.'; lint
expect "a value with a class of its own" 1 "$(line_of 'And `ms')" \
	"has the class lua:.2, which is none of code"
body() { for ((i = 0; i < $1 - 3; i++)); do echo "	local x$i = $i"; done; }
values 'f = function()' "$(body 25)" '	return 20' 'end' 'twice = f()'
expect_good "a function of 25 lines"
values 'f = function()' "$(body 26)" '	return 20' 'end' 'twice = 2*small.fwd_ms'
fault "a function of 26 lines" "f has 26 lines, and 25 are allowed"
values 'twice = 20' \
	"same = all(bench, \"like(bench, 'size').bwd_ms == 2*fwd_ms\")"
while IFS= read -r test; do
	add "[So.]{.claim test=\"$test\"}"
done <<'END'
same and all(bench, 'bwd_ms == 2*fwd_ms') and not all(bench, 'fwd_ms < 20')
max(bench, 'bwd_ms/fwd_ms') == 2 and sum({1, 2}, 'it^2') == 5
count(bench, 'fwd_ms > least', {least=20}) == 1
bench('fwd_ms > 20').size == 'large' and argmax(bench, '-fwd_ms').fwd_ms == 10
increasing(bench, 'fwd_ms') and not increasing(bench, '-fwd_ms')
by(bench, 'size', 'bwd_ms/2')('large') == 30 and of('2*fwd_ms')(small) == 20
#pick(bench, 'fwd_ms > 40') == 0 and range(2, bench.fwd_ms) == '10 to 30'
range('1', bench.fwd_ms) == '10.0 to 30.0' and cell(small, 'fwd_ms', 1) == '10.0'
END
lint
expect_good "expressions over rows"
add "[It does not hold.]{.claim test=\"all(bench, 'fwd_ms < 20')\"}"; lint
expect "an expression that does not hold" 1 "$(line_of 'It does not')" \
	"claim is false"
rm -rf src tables build
ln -s "$root/src" . && cp -R "$root/tables" . && rm -rf tables/local
awk '/^<[<].*>>= *$/ { code = 1 } !code
	code && /^@( |$)/ { code = 0; print "" }' "$root/writeup.nw" |
	sed 's/](#[^)]*)/]/g' | awk '
		/^\\part\{/ { parts++ }
		/^```/ { fence = !fence }
		parts < 2 { print; next }
		/^$/ && !fence { if (keep) print text; text = keep = ""; next }
		{ text = text $0 "\n" }
		/^#+ |^\\part|\{\.lua|test="|columns="/ { keep = 1 }' >writeup.nw
lint
sed -i '/^weave: .* freshness is unknown$/d' said
expect_good "the values of this document"
finish
