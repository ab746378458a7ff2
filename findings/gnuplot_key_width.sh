#!/usr/bin/env bash
# gnuplot_key_width.sh: gnuplot 6.0.2 of Debian 13
#
# `set key at screen X, Y` puts the key of a multiplot's panel anywhere on the
# page, and `horizontal maxrows 1` asks for one row of titles.  But how many
# titles stand side by side is counted by the width of the panel that draws the
# key, not by that of the page on which it is placed.  In a narrow panel the row
# becomes a column, without a warning, and `maxrows 1` does not hold: a key that
# has the page's width for itself lies across the panels below it.  One panel as
# wide as four, with the same key at the same place, has it in one row.
#
# Seen, of three titles, on a page of 640 x 200:
#     1 panel: 1 row
#     4 panels: 3 rows
#
# Downloads about 100 MB of packages of Debian 13 into a temporary folder, and
# runs gnuplot from there.
set -euo pipefail
gnuplot=6.0.2+dfsg1-1
. "$(dirname "$0")/debian"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unpack trixie "gnuplot-nox=$gnuplot"
library_path=$(libraries)
cat >plot.gp <<'END'
set terminal svg size 640,200
set output "plot.svg"
set multiplot layout 1,panels
set key at screen 0.5, screen 0.98 center top horizontal maxrows 1
do for [i=1:panels] {
	plot x title "one", x + 1 title "two", x + 2 title "three"
	unset key
}
END
rows() { # rows PANELS: how many rows of titles there are
	FONTCONFIG_PATH=$work/root/etc/fonts \
		"$work/root/usr/lib64/ld-linux-x86-64.so.2" \
		--library-path "$library_path" "$work/root/usr/bin/gnuplot-nox" -d \
		-e "panels = $1" plot.gp 2>/dev/null
	awk '/translate\(/ { sub(/.*translate\([^,]*,/, ""); y = $0 + 0 }
		/<text.*>(one|two|three)</ { n += !seen[y]++ } END { print n }' plot.svg
}
{
	echo "1 panel: $(rows 1) row"
	echo "4 panels: $(rows 4) rows"
} | tee said
diff said - <<'END'
1 panel: 1 row
4 panels: 3 rows
END
echo 'gnuplot lays out keys as described'
