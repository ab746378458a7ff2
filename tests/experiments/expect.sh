# expect.sh: sourced by tests; runs programs, and looks at what they say
out=$(mktemp -d || mktemp -d -p /tmp) || exit 1
trap 'rm -rf "$out"' EXIT
. tests/base/check.sh
expect() { # expect NAME STATUS PATTERN PROGRAM ARGUMENTS...
	local name=$1 status=$2 pattern=$3 program=${BUILD:-build}/$4 got=0
	shift 4
	"$program" "$@" >"$out/said" 2>&1 || got=$?
	if [ $got = "$status" ] && grep -q -e "$pattern" "$out/said"; then
		echo "ok - $name"
	else
		echo "not ok - $name: exit $got: $(grep -m 1 'not yet written:' \
			"$out/said" || tail -n 1 "$out/said")"
		failed=1
	fi
}
column() { # column NAME: of the rows of $out/table.tsv
	awk -F'\t' -v name="$1" '/^#/ { next }
		!at { while (++at <= NF && $at != name); next }
		{ print $at }' "$out/table.tsv"
}
near() { # near COLUMN COLUMN PART: in each row
	paste <(column "$1") <(column "$2") | awk -v part="$3" '{ n++
		d = $1 - $2 } !(/^[0-9]/ && d*d <= part*part*$2*$2) { bad = 1 }
		END { exit bad || !n }'
}
