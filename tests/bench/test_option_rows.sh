#!/usr/bin/env bash
# test_option_rows.sh: an option of several programs is a row of option_rows.h
set -euo pipefail
. tests/base/check.sh
rows() { grep -rhoE '\{ "[A-Za-z0-9-]+", *OPT_' "$@" | sort; }
check 'there are rows' test "$(rows src/experiments src/cases | wc -l)" -gt 40
twice=$(rows src/experiments src/cases | uniq -d)
check "no row is written twice: $twice" test -z "$twice"
again=$(rows src/bench/option_rows.h | uniq -d)
check "and none in two ways: $again" test -z "$again"
exit $failed
