# flame_graph.gp: ranges and kernels of a forward pass, one upon the other
height = 112
load "src/plots/style.gp"
set datafile missing NaN
left(f) = column("start_ms")*only("fusion", f)
right(f) = left(f) + column("width_ms")
level(dummy) = column("depth")
warm(dummy) = level(0) == 0 ? 0xd8d8d8 : level(0) == 1 ? 0xe3c16f \
	: level(0) == 2 ? 0xe0a050 : level(0) == 3 ? 0xd9793a \
	: level(0) == 4 ? 0xc05a3a : 0x9c4233
unset grid
unset ytics
set border 1
set key off
set style fill solid 0.85 border lc rgb "white"
set multiplot layout 2,1
set xlabel "ms"
do for [f in "eager fused"] {
	set autoscale
	stats table using (right(f)) nooutput
	total = STATS_max
	set xrange [0:total]
	set yrange [-0.5:5.6]
	most(dummy) = int(column("width_ms")/total*88)
	text(dummy) = strlen(stringcolumn("box")) <= most(0) || most(0) > 15 \
		? stringcolumn("box")[1:most(0)] : ""
	set title f eq "eager" ? "eager" : "fused"
	plot table using (left(f)):(level(0)):(left(f)):(right(f)): \
		(level(0) - 0.48):(level(0) + 0.48):(warm(0)) \
		with boxxyerror lw 0.3 lc rgb variable, \
		"" using (left(f) + total*0.003):(level(0)):(text(0)) with labels left \
		noenhanced font ",7"
}
unset multiplot
