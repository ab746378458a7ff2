# fsdp_timeline.gp: both queues of a step of FSDP, and waits, by prefetch
height = 92
load "src/plots/style.gp"
set datafile missing NaN
# a viewer would draw a wait of a few us as wide as one of a hundred
long(dummy) = stringcolumn("class") ne "wait" \
	|| column("end_us") - column("start_us") >= 20 ? 1 : NaN
of(k) = is("prefetch", k)*only("sums", "comm")*long(0)
load "src/plots/queues.gp"
set key maxrows 2
set multiplot layout 3,1 margins 0.2, 0.98, 0.13, 0.83 spacing 0, 0.15
classes = "forward backward optimizer wait all-gather reduce-scatter"
colours = colour_forward." ".colour_backward." ".colour_optimizer." " \
	.colour_wait." ".colour_communication." ".colour_reduction
do for [k=0:2] {
	set title sprintf("prefetch %d", k)
	if (k > 0) { unset key }
	if (k == 2) { set xlabel "ms" }
	plot for [c=1:words(classes)] @bars
}
unset multiplot
