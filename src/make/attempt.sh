#!/usr/bin/env bash
# attempt.sh PROGRAM --out TABLE ARGUMENT...: runs an experiment of an assignment;
# one that meets a function that is not written leaves no table, and is no failure
set -u
log=$(mktemp build/attempt.XXXXXX)
trap 'rm -f "$log"' EXIT
UNWRITTEN_LOG=$log "$@"
status=$?
[ $status -ne 0 ] && [ -s "$log" ] || exit $status
echo "  waits $1: $(sort -u "$log" | paste -s -d ';')"
rm -f "$3"
