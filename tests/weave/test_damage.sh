#!/bin/bash
# test_damage.sh: a damaged table is named with its line, and never half-read
. "$(dirname "$0")/helpers.sh"
table=tables/cpu/bench.tsv
first=3
make_document; rm $table; lint
expect "a deleted table" 1 $first "no table bench"

make_document; truncate -s -20 $table; lint
expect "a table truncated in mid-row" 1 $first "$table:11: .*middle of a line"

make_document; truncate -s -1 $table; lint
expect "a table without its last newline" 1 $first "$table:11: "

make_document; : >$table; lint
expect "an empty table" 1 $first "$table:1: the file is empty"

make_document; head -n 8 $table >t && mv t $table; lint
expect "a table without rows" 1 $first "no row of column names"

make_document; edit '2i # rows: 3' $table; lint
expect "a table with a row missing" 1 $first "2 rows, but the header says 3"
for key in checksum table machine date digest complete; do
	make_document; edit "/^# $key:/d" $table; lint
	expect "a header without $key" 1 $first "no .# $key:. line"
done

make_document; edit 's/^# machine: cpu/# machine: h100/' $table; lint
expect "a table of another machine" 1 $first "measured on h100"

make_document; edit '2s/.*/# no colon/' $table; lint
expect "a broken header line" 1 $first "$table:2: "
make_document; edit 's/^size\tfwd_ms\t/size\tforward\t/' $table; lint
expect "a renamed column" 2 "$(line_of 'The forward')" "no column fwd_ms"

make_document; edit 's/^size\tfwd_ms\tfwd_bound_ms/size\tfwd_ms\tfwd_ms/' $table
lint
expect "a column that stands twice" 1 $first "$table:9: column fwd_ms"

make_document; edit 's/^small\t/small\tx\t/' $table; lint
expect "a row with too many fields" 1 $first "$table:10: 6 fields"

make_document; edit 's/^large\t30.0/large\t14.0/' $table; lint
expect "a value below its roofline bound" 1 $first \
	"$table:11: fwd_ms is 14.0, below"
state() {	# the status of the weave, and what the registry says
	echo "$status $(awk -F '\t' '$1 == "bench" { print $3, $4 }' \
		build/weave/tables.tsv)"
}

make_document; lint
if [ "$(state)" = "0 yes fresh" ]; then ok "a fresh table"
else not_ok "a fresh table ($(state))"; fi

make_document; edit 's/^# digest: 0/# digest: f/' $table; lint
if [ "$(state)" = "0 yes stale" ]; then ok "a stale table"
else not_ok "a stale table ($(state))"; fi

for hand in 's/60.0/61.0/' '/^# date/s/2026/2025/' 's/^# digest: 0/# digest: 1/' \
	's/^# device: a test/# device: H100/' 's/^# scale: course/# scale: tiny/' \
	'/^large/d' '1s/: ./: /' '1s/.*/# checksum: 0/'; do
	make_document; sed -i "$hand" $table; lint
	expect "edited by hand: $hand" 1 $first "altered"
done
make_document; edit 's/^# complete: yes/# complete: no/' $table; lint
if [ "$(state)" = "0 no fresh" ]; then ok "an unfinished table"
else not_ok "an unfinished table ($(state))"; fi

make_document; rm build/digest/bench.cpu; lint
if [ "$(state)" = "0 yes unknown" ]; then
	ok "freshness without a digest is unknown"
else not_ok "freshness without a digest is unknown ($(state))"; fi
finish
