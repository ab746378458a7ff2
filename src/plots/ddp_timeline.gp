# ddp_timeline.gp: both queues of a step, without and with overlap
height = 70
load "src/plots/style.gp"
set datafile missing NaN
of(k) = only("kind", k)
low(k) = column("start_us")*1e-3*of(k)
high(k) = column("end_us")*1e-3*of(k)
row(dummy) = stringcolumn("queue") eq "compute" ? 0 : -1
stats table using (column("end_us")*1e-3) nooutput
set xrange [0:STATS_max]
set yrange [-1.6:0.6]
set ytics ("compute" 0, "communication" -1) scale 0
unset grid
set style fill solid 0.85 border lc rgb "white"
set key maxrows 1
set multiplot layout 2,1
classes = "forward backward optimizer all-reduce"
colours = "#9db0cf #1b3560 #1f6b5c #d9793a"
do for [k in "naive overlap"] {
	set title k eq "naive" ? "each by itself, after the backward pass" \
		: "as soon as they are there"
	if (k eq "overlap") {
		set xlabel "ms"
		unset key
	}
	plot for [c=1:4] table using ((low(k) + high(k))/2):(row(0)): \
		(low(k)*only("class", word(classes, c))):(high(k)): \
		(row(0) - 0.35):(row(0) + 0.35) with boxxyerror fs solid \
		noborder lc rgb word(colours, c) \
		title word(classes, c)
}
unset multiplot
