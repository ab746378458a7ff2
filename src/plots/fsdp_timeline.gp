# fsdp_timeline.gp: both queues of a step of FSDP, and waits, by prefetch
height = 92
load "src/plots/style.gp"
set datafile missing NaN
# a viewer would draw a wait of a few us as wide as one of a hundred
long(dummy) = stringcolumn("class") ne "wait" \
	|| column("end_us") - column("start_us") >= 20 ? 1 : NaN
of(k) = is("prefetch", k)*only("sums", "comm")*long(0)
low(k) = column("start_us")*1e-3*of(k)
high(k) = column("end_us")*1e-3*of(k)
# waits are lower, to be told from the rest in grey
high_of(c) = c == 4 ? 0.17 : 0.35
row(dummy) = stringcolumn("queue") eq "compute" ? 0 : -1
stats table using (column("end_us")*1e-3) nooutput
set xrange [0:STATS_max]
set yrange [-1.6:0.6]
set ytics ("compute" 0, "communication" -1) scale 0
unset grid
set style fill solid 0.85 border lc rgb "white"
set key maxrows 2
set multiplot layout 3,1 margins 0.2, 0.98, 0.13, 0.83 spacing 0, 0.15
classes = "forward backward optimizer wait all-gather reduce-scatter"
colours = colour_forward." ".colour_backward." ".colour_optimizer." " \
	.colour_wait." ".colour_communication." ".colour_reduction
do for [k=0:2] {
	set title sprintf("prefetch %d", k)
	if (k > 0) { unset key }
	if (k == 2) { set xlabel "ms" }
	plot for [c=1:6] table using ((low(k) + high(k))/2):(row(0)): \
		(low(k)*only("class", word(classes, c))):(high(k)): \
		(row(0) - high_of(c)):(row(0) + high_of(c)) with boxxyerror fs solid \
		noborder lc rgb word(colours, c) \
		title word(classes, c)
}
unset multiplot
