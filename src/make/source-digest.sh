#!/usr/bin/env bash
# source-digest.sh: 16 digits that name the document and the recorded tables
set -euo pipefail
export LC_ALL=C
{
	echo writeup.nw
	[ ! -d tables ] || find tables -name '*.tsv' ! -path 'tables/local/*'
} | sort | xargs sha256sum | sha256sum | cut -c 1-16
