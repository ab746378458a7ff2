# ddp_timeline.gp: both queues of a step, without and with overlap
height = 70
load "src/plots/style.gp"
set datafile missing NaN
of(k) = only("kind", k)
load "src/plots/queues.gp"
set key maxrows 1
set multiplot layout 2,1
classes = "forward backward optimizer all-reduce"
colours = colour_forward." ".colour_backward." ".colour_optimizer." " \
	.colour_communication
do for [k in "naive overlap"] {
	set title k eq "naive" ? "each by itself, after the backward pass" \
		: "as soon as they are there"
	if (k eq "overlap") {
		set xlabel "ms"
		unset key
	}
	plot for [c=1:words(classes)] @bars
}
unset multiplot
