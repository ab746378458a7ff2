#!/usr/bin/env bash
# test_several_nodes.sh: several_nodes: a step over two nodes, nonsense
. tests/experiments/expect.sh
if bash src/bench/two_nodes.sh 1 true >/dev/null 2>&1; then
	expect 'a step over two nodes' 0 '^ *2  *10  *zero1  *small  *.* ok$' \
		several_nodes --nodes 2 --Gbps 10 --size small --wide
	check 'what is sent is derived' \
		grep -q '  1.55[0-9]  *[0-9.]*  *ok$' "$out/said"
	expect 'buckets over two nodes' 0 '^ *2  *10  *5  *small  *1  *.* ok$' \
		several_nodes --nodes 2 --Gbps 10 --size small --sweep buckets --wide
	check 'of all sizes' test "$(grep -c ' ok$' "$out/said")" = 7
else
	expect 'a line says why there are no nodes' 0 \
		'skipped: two_nodes.sh: ' several_nodes --nodes 2 --Gbps 10 --wide
fi
while IFS='|' read -r name pattern arguments; do
	expect "$name" 2 "$pattern" several_nodes $arguments
done <<END
one node|'1' is not an integer in 2..9|--nodes 1
no rate|expected 0.01 to 1000|--Gbps -1
a rate that is no number|'nan' is not a finite|--Gbps nan
no constants|no table of training steps|--tables /nowhere
END
exit $failed
