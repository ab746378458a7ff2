#!/usr/bin/env bash
# grade.sh yes|no: a score for each problem, from its tests, tables and claims;
# the argument says whether the document could be woven
set -euo pipefail
export LC_ALL=C
tests=build/test-results.tsv weave=build/weave
[ "${1:-yes}" = yes ] || bash src/weave/weave.sh --lint writeup.nw || true
for file in $tests $weave/tables.tsv $weave/claims.tsv $weave/problems.tsv; do
	[ -f "$file" ] || { echo "grade: $file is missing" >&2; exit 2; }
done
device=$(sed -n 's/^DEVICE := //p' build/config.mk 2>/dev/null || true)
{
	printf 'problem\tfunction\n'
	find src -name '*.c' -o -name '*.cu' | sort | xargs -r \
		awk -v device="$device" -f src/make/unwritten.awk
} >build/unwritten.tsv
exec awk -F '\t' -v woven="${1:-yes}" -v course="${COURSE_POINTS:-183}" \
	-f src/make/grade.awk build/unwritten.tsv $tests $weave/tables.tsv \
	$weave/claims.tsv $weave/problems.tsv
