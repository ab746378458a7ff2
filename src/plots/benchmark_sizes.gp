# benchmark_sizes.gp: the phases of a step by size; step time against context
height = 62
load "src/plots/style.gp"
sizes = "small medium large xl 2.7B"
place(name) = sum [i=1:words(sizes)] (word(sizes, i) eq name ? i : 0)
stats table using "context" nooutput
longest = STATS_max
x(dummy) = place(stringcolumn("size")) * is("context", longest)
upto2(dummy) = column("fwd_ms") + column("bwd_ms")
set multiplot layout 1,2
set ylabel "ms"
set yrange [0:*]
set xrange [0.4:words(sizes) + 0.6]
set xtics ("small" 1, "medium" 2, "large" 3, "xl" 4, "2.7B" 5) scale 0 \
	rotate by 30 right
plot table using (x(0)):(upto2(0) + column("opt_ms")) with boxes lt 3 \
	title "optimizer", "" using (x(0)):(upto2(0)) with boxes lt 2 \
	title "backward", "" using (x(0)):"fwd_ms" with boxes lt 1 title "forward"
set logscale xy 2
set autoscale
set xrange [*:*] noextend
set xtics auto norotate center scale 0.5
set xlabel "context"
set ylabel "step (ms)"
plot for [i=1:words(sizes)] table \
	using (column("context")*only("size", word(sizes, i))):"step_ms" \
	with linespoints lt i title word(sizes, i)
unset multiplot
