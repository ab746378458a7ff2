#!/bin/bash
# test_claims.sh: false claims and bad values stop the weave
. "$(dirname "$0")/helpers.sh"
make_document; lint; expect_good "a document in order passes"

make_document; edit 's/, 2, 0.1)/, 3, 0.1)/'; lint
expect "a false claim" 1 "$(line_of '{.claim')" "claim is false"

make_document; edit 's/bwd_ms < 1000/bwd_ms > 1000/'; lint
expect "a reversed claim" 1 "$(line_of 'Everything')" "(20 > 1000)"

make_document; edit 's/^small\t10.0/small\t14.0/' tables/cpu/bench.tsv; lint
expect "a number altered in a recorded table" 1 "$(line_of '{.claim')" \
	"tables/cpu/bench.tsv"

make_document; edit 's/test="small.bwd_ms < 1000"/test="small.bwd_ms"/'; lint
expect "a test that is neither true nor false" 1 "$(line_of Everything)" \
	"true or false"
make_document; make_table local course 10.0
edit 's/\t20.0\tok/\t2000.0\tok/' tables/local/bench.tsv
edit 's/, 2, 0.1)"/, 2, 0.1)" else="Not here."/'; lint
expect_good "else replaces a sentence that local data deny"
verdicts=$(awk -F '\t' '/near/ { print $3, $4 }' build/weave/claims.tsv)
if [ "$verdicts" = "$(printf 'recorded yes\nshown no')" ]; then
	ok "both verdicts are written down"
else not_ok "both verdicts are written down"; fi

edit 's/ else="Not here."//'; lint
expect "without else they stop the weave" 1 "$(line_of '{.claim')" \
	"tables/local/bench.tsv"

make_document; make_table local course 10.0
edit 's/^small\t10.0/small\t14.0/' tables/cpu/bench.tsv
edit 's/, 2, 0.1)"/, 2, 0.1)" else="Not here."/'; lint
expect "else does not excuse recorded data" 1 "$(line_of '{.claim')" \
	"tables/cpu/bench.tsv"

make_document; make_table local course 10.0
edit '/^small/d' tables/local/bench.tsv; lint
if [ $status -eq 0 ] && [ "$(grep -c "recorded on cpu" said)" -eq 1 ]; then
	ok "what local data cannot decide is taken from the record"
else not_ok "what local data cannot decide is taken from the record"; fi

make_document; make_table local "small (a tenth)" 14.0; lint
expect_good "a scaled-down local table gives way to a recorded one"
make_document; edit 's/small.fwd_ms)`/small.fwd_s)`/'; lint
expect "an unknown column" 1 "$(line_of 'The forward')" "has no column fwd_s"

make_document; edit 's/ms(small.fwd_ms)`/ms(nothing.fwd_ms)`/'; lint
expect "an unknown table" 1 "$(line_of 'The forward')" "nothing is neither"

make_document; edit 's/^small = .*/small = bench{size = "no"}/'; lint
expect "an empty selection" 1 "$(line_of 'small = bench')" 'has size = no'

make_document
edit 's/^small = .*/small = bench(function(r) return r.fwd_ms < 11 end)/'; lint
expect_good "rows selected by a function"

make_document
edit "s/bwd_ms < 1000/bwd_ms < 1000 and known(small, 'bwd_ms')/"; lint
expect_good "a claim may ask for a cell that is there"

make_document; edit "s/test=\"small.bwd_ms < 1000/test=\"known(small, 'gone')/"
lint; expect "a cell that is not there" 1 "$(line_of Everything)" "is false"

make_document
edit 's/^small = .*/small = bench(function(r) return r.fwd_ms > 99 end)/'; lint
expect "a selection by a function, empty" 1 "$(line_of 'small = bench')" \
	'has what is asked of it'

make_document
edit "s/small.bwd_ms < 1000/pm(182.7, 0.12, 3):find('^182.7.*0.1$') ~= nil/"
lint
expect_good "a deviation has a digit"

make_document
edit "s/small.bwd_ms < 1000/pm(1.5, 0.1, 3):find('^1.50.*0.10$') ~= nil/"
lint
expect_good "and as many as its mean"

make_document; edit 's/^small = .*/&\nother = bench{size = "no"}/'; lint
expect "an empty selection on the second line of a definition" 1 \
	"$(line_of 'other = bench')" 'has size = no'

make_document; edit 's/`ms(small.fwd_ms)`/`({}).fwd_ms`/'; lint
expect "no value" 1 "$(line_of 'The forward')" "has no value"

make_document; edit 's/`ms(small.fwd_ms)`/`small.fwd_ms`/'; lint
expect "a value without format" 1 "$(line_of 'The forward')" "bare number"

make_document; edit 's/`ms(small.fwd_ms)`/`ms(small.fwd_ms`/'; lint
expect "a syntax error" 1 "$(line_of 'The forward')" "expected"
make_document; edit 's/, 2, 0.1)/, 3, 0.1)/; s/bwd_ms < 1000/bwd_ms > 1000/'
add "It took 17 ms." "See [](#fig:none)."; lint
expect "several failures: the first" 4 "$(line_of '{.claim')" "claim is false"
expect "several failures: the second" 4 "$(line_of Everything)" "1000"
expect "several failures: the third" 4 "$(line_of '17')" "typed number 17"
expect "several failures: the fourth" 4 "$(line_of 'fig:none')" \
	"label fig:none"
finish
