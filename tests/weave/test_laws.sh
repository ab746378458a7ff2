#!/bin/bash
# test_laws.sh: broken laws stop the weave, and most altered numbers break one
. "$(dirname "$0")/helpers.sh"
laws() { bash "$1" --laws writeup.nw >said 2>&1; status=$?; }
recorded=$root/tables
make_document; rm -r tables; cp -r "$recorded" tables
rm -rf tables/local; cp "$root/writeup.nw" .; laws "$weave"
expect_good "the recorded tables keep all laws"

table=tables/cpu/engine_speed.tsv
double_rate() {	# double_rate COPY: of $table, with a right checksum
	awk -F '\t' -v OFS='\t' '/^small/ { $9 *= 2 } 1' "$table" >"$1"
	seal "$1"
}
double_rate t; mv t $table; laws "$weave"
expect "a broken law" 2 "$(line_of 'law("a rate is work')" \
	"$table:[0-9]*: size small.*rate_GFlops"
expect "another" 2 "$(line_of 'law("a fraction is')" "fraction"

make_document; mkdir -p tables/cpu; cp "$recorded/cpu/engine_speed.tsv" $table
double_rate t; mv t $table; lint
expect "a law broken by a table that is not used" 2 0 "a rate is work over time"

mkdir tables/local; sed 's/^# machine: cpu/# machine: local/' $table \
	>tables/local/engine_speed.tsv; seal tables/local/engine_speed.tsv
cp "$recorded/cpu/engine_speed.tsv" $table; lint
if [ $status = 0 ] && grep -q '^weave: tables/local/engine_speed' said; then
	ok "a local table warns"
else not_ok "a local table warns"; fi

rm -r tables/local; cp "$recorded"/cpu/{peaks,benchmarking_script}.tsv \
	tables/cpu; truncate -s -9 tables/cpu/peaks.tsv; lint
expect "a damaged table has one complaint" 1 0 "peaks.tsv:.*middle of a line"
without_values() {	# without_values STATUS: of the one row that h100 has
	make_table h100 course 10.0
	sed -i '/^[^#]/d' tables/h100/bench.tsv
	printf '%s\t%s\n' size status small "$1" >>tables/h100/bench.tsv
	seal tables/h100/bench.tsv
}
own() {	# own NAME TEST MESSAGE COUNT: the law is complained of, once or so often
	make_document
	rm -rf own; cp -r "$(dirname "$weave")" own; rm own/laws/*
	printf 'tables("bench", "size")\nlaw("our own", "%s")\n' "$2" \
		>own/laws/own.lua
	[ -z "${beside-}" ] || without_values "$beside"
	laws own/weave.sh
	if [ -n "$3" ]; then expect "$1" "${4-1}" 0 "$3"; else expect_good "$1"; fi
}
own "a law that holds" "fwd_ms < bwd_ms" ""
own "a row that breaks it" "fwd_ms < 20" "bench.tsv:11: size large: .*fwd_ms 30.0"
own "an unknown column" "fwd_s < 20" "no column fwd_s"
beside=oom own "a column that only other machines set" "fwd_ms < bwd_ms" ""
beside=oom own "a column that no machine sets" "fwd_s < 20" "no column fwd_s" 2
beside=ok own "a row in order without a column" "fwd_ms < bwd_ms" \
	"h100/bench.tsv has no column fwd_ms"
own "a table that is not there" "of('none', {size = size}).fwd_ms > 99" ""
own "a test that is neither true nor false" "fwd_ms" "neither true nor false"
own "a syntax error" "fwd_ms <" "unexpected symbol"
own "a stem" "\$_ms < 50" "bwd_ms < 50"
own "another row" "other{size = 'small'}.fwd_ms < fwd_ms / 2" "size small"
own "a row that is not there" "other{size = 'huge'}.fwd_ms > 99" ""
own "growth" "scales('bwd_ms', 'fwd_ms', 0, 0.5)" ""
make_document; rm -r tables; cp -r "$recorded" tables; rm -rf tables/local
pandoc --quiet -f markdown -L "$root/tests/weave/alter.lua" -t native \
	-o /dev/null /dev/null >said 2>&1
read -r named of altered < <(tail -n 1 said)
if [ "$of" = of ] && [ "$altered" -ge 100 ] && [ $((2 * named)) -ge "$altered" ]
then ok "laws name at least half of the altered numbers ($named of $altered)"
else not_ok "laws name at least half of the altered numbers"; fi
if grep -q '^no table' said; then not_ok "laws speak of tables that are there"
else ok "laws speak of tables that are there"; fi
finish
