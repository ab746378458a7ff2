#!/usr/bin/env bash
# test_option_rows.sh: an option of several programs is a row of option_rows.h
set -euo pipefail
. tests/base/check.sh
rows() { # the names of options, one for each row
	grep -rhoE '\{ "[A-Za-z0-9-]+", *(OPT_|KIND)' "$@" | cut -d '"' -f 2 | sort
}
check 'there are rows' test "$(rows src/experiments src/cases | wc -l)" -gt 40
twice=$(rows src/experiments src/cases src/bench | uniq -d | tr '\n' ' ')
check "no option is written twice: $twice" test -z "$twice"
exit $failed
