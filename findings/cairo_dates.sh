#!/usr/bin/env bash
# cairo_dates.sh: cairo 1.18.4, as gnuplot 6.0.2 of Debian 13 writes PDF with it
#
# A PDF of cairo's has the time of writing in its document information.
# SOURCE_DATE_EPOCH, by which other programs are given another time, is not read.
# Up to version 1.16 the time stands in the file as text, where it can be
# replaced by one of equal length.  From 1.18 on cairo writes PDF 1.5 and packs
# the document information into a compressed object stream: neither /CreationDate
# nor /Producer is to be found in the bytes, and the same plot drawn twice gives
# files that differ.
#
# Seen:
#     %PDF-1.5
#     0 lines with CreationDate, 0 with Producer
#     two drawings of one plot differ
#
# Downloads about 100 MB of packages of Debian 13 into a temporary folder, and
# runs gnuplot from there.
set -euo pipefail
gnuplot=6.0.2+dfsg1-1 cairo=1.18.4-1+b1
. "$(dirname "$0")/debian"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unpack trixie "gnuplot-nox=$gnuplot" "libcairo2=$cairo"
library_path=$(libraries)
draw() { # draw FILE
	SOURCE_DATE_EPOCH=946684800 FONTCONFIG_PATH=$work/root/etc/fonts \
		"$work/root/usr/lib64/ld-linux-x86-64.so.2" \
		--library-path "$library_path" "$work/root/usr/bin/gnuplot-nox" -d \
		-e "set terminal pdfcairo; set output '$1'; plot x" 2>/dev/null
}
draw first.pdf
sleep 2
draw second.pdf
count() { grep -a -c "$1" first.pdf || true; }
{
	head -n 1 first.pdf
	echo "$(count CreationDate) lines with CreationDate, $(count Producer) with" \
		Producer
	cmp -s first.pdf second.pdf || echo 'two drawings of one plot differ'
} | tee said
diff said - <<'END'
%PDF-1.5
0 lines with CreationDate, 0 with Producer
two drawings of one plot differ
END
echo 'cairo behaves as described'
