# svg.gp: after style.gp, the same figure for a browser
set output
set terminal svg size 640, 640 * height / 123.0 \
	font "Palatino Linotype, Palatino, TeX Gyre Pagella, serif,8.5" \
	fontscale 1.3 linewidth 1.2 enhanced rounded
set output out
