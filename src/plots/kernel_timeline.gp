# kernel_timeline.gp: an eager step by ranges and kernels, and a block of it
height = 108
load "src/plots/style.gp"
set datafile missing NaN
of(f) = only("fusion", f)
low(f) = column("start_us")*1e-3*of(f)
high(f) = column("end_us")*1e-3*of(f)
middle(f) = (low(f) + high(f))/2
row(dummy) = -column("lane")
# times of the nth range of a name
load "src/plots/rows.gp"
times(f, name, n) = rows("start\tend", sprintf("c(\"fusion\") == \"%s\" && \
	c(\"kind\") == \"range\" && c(\"name\") == \"%s\" && ++n == %d { \
	print c(\"start_us\")/1000, c(\"end_us\")/1000 }", f, name, n)).table
set ytics ("step" 0, "phase" -1, "layer" -2, "part" -3, "inside" -4, \
	"matmul" -6, "softmax" -7, "norm" -8, "attention" -9, \
	"feed-forward" -10, "optimizer" -11, "rest" -12) scale 0
unset grid
set style fill solid 0.85 border lc rgb "white"
set key off
set multiplot layout 2,1
set xlabel "ms"
f = "eager"
classes = colour_matmul." ".colour_softmax." ".colour_norm." " \
	.colour_attention." ".colour_ffn." ".colour_optimizer." ".colour_rest
phases = "forward backward optimizer"
phase_colours = colour_forward." ".colour_backward." ".colour_optimizer
do for [shows in "step block"] {
	set title shows eq "step" ? "one step" : "its sixth block, forward"
	set autoscale
	stats times(f, "step", 1) using "start":"end" nooutput
	from = STATS_min_x
	to = STATS_max_y
	if (shows eq "block") {
		stats times(f, "layer", 6) using "start":"end" nooutput
		from = STATS_min_x
		to = STATS_max_y
	}
	set xrange [from:to]
	set yrange [-12.6:0.6]
	wide = (to - from)*0.075
	named(dummy) = column("lane") < 6 && high(f) - low(f) > wide \
		&& middle(f) > from && middle(f) < to \
		? stringcolumn("name") : ""
	dark(dummy) = column("lane") == 1 && stringcolumn("name") ne "forward"
	plot table using (middle(f)):(row(0)/(column("lane") < 6)):(low(f)): \
		(high(f)):(row(0) - 0.4):(row(0) + 0.4) \
		with boxxyerror fs solid border lc rgb "#f4f6fa" lw 0.1 \
		lc rgb "#ccd2da", \
		for [k=1:3] "" using (middle(f)):(row(0)/(column("lane") == 1 && \
		stringcolumn("name") eq word(phases, k))):(low(f)): \
		(high(f)):(row(0) - 0.4):(row(0) + 0.4) with boxxyerror fs solid \
		noborder lc rgb word(phase_colours, k), \
		for [k=6:12] "" using (middle(f)):(row(0)/(column("lane") == k)): \
		(low(f)):(high(f)):(row(0) - 0.4):(row(0) + 0.4) \
		with boxxyerror fs solid noborder lc rgb word(classes, k - 5), \
		"" using (middle(f)):(row(0)):(named(0)):(dark(0) ? 0xffffff : 0) \
		with labels font ",7.4" tc rgb variable
}
unset multiplot
