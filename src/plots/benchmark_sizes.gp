# benchmark_sizes.gp: phases of a step by size, and its time against context
height = 72
load "src/plots/style.gp"
load "src/plots/sizes.gp"
set datafile missing NaN
stats table using "context" nooutput
middle = STATS_max > 512 ? 512 : STATS_max
# bf16 on a GPU, fp32 without one
bf16(dummy) = stringcolumn("precision") eq "bf16" ? 1 : 0
stats table using (bf16(0)) nooutput
last = STATS_max > 0 ? "bf16 fused" : "fp32 fused"
of(p) = only("precision", word(p, 1))*only("fusion", word(p, 2))
x(p) = index_of(stringcolumn("size"))*is("context", middle)*of(p)
all(dummy) = column("fwd_med_ms") + column("bwd_med_ms") + column("opt_med_ms")
sums(n) = (column("fwd_med_ms") + (n > 1 ? column("bwd_med_ms") : 0) \
	+ (n > 2 ? column("opt_med_ms") : 0))/all(0)
digits(x) = sprintf(x < 10 ? "%.1f" : "%.0f", x)
set multiplot
set tmargin at screen 0.83
set bmargin at screen 0.18
set lmargin at screen 0.09
set rmargin at screen 0.36
set yrange [0:1]
set xtics rotate by 45 right
set ylabel "fraction of the step" offset 0.5, 0
set key at screen 0.09, screen 0.985 left top vertical maxrows 1
do for [p in "'fp32 eager' 'LAST'"] {
	if (p eq "LAST") {
		p = last
		unset key
		unset ylabel
		set format y ""
		set lmargin at screen 0.39
		set rmargin at screen 0.66
	}
	set title word(p, 1).", ".word(p, 2).", ms above" offset 0, 0.5
	plot table using (x(p)):(sums(3)) with boxes lc rgb colour_optimizer \
		notitle, \
		"" using (x(p)):(sums(2)) with boxes lc rgb colour_backward notitle, \
		"" using (x(p)):(sums(1)) with boxes lc rgb colour_forward notitle, \
		"" using (x(p)):(1):(digits(column("step_med_ms"))) with labels \
		font ",7.4" offset 0, 0.5 notitle, \
		keyentry with boxes lc rgb colour_forward title "forward", \
		keyentry with boxes lc rgb colour_backward title "backward", \
		keyentry with boxes lc rgb colour_optimizer title "optimizer"
}
set format y "%g"
set lmargin at screen 0.755
set rmargin at screen 0.985
set title word(last, 1).", ".word(last, 2) offset 0, 0.5
set ylabel "step (ms)" offset 1, 0
set logscale x 2
set logscale y
set autoscale
set xrange [*:*] noextend
set offsets 0, graph 0.47, 0, 0
set xtics (128, 256, 512, 1024) norotate center scale 0.5 font ",7.4"
set xlabel "context"
# names of neighbouring lines, one above and one below its end
aside(i) = i == words(sizes) ? 0.25 : i == words(sizes) - 1 ? -0.25 : 0
plot for [i=1:words(sizes)] table \
	using (column("context")*only("size", word(sizes, i))*of(last)): \
	"step_med_ms" with linespoints lt i, \
	for [i=1:words(sizes)] table using (column("context") > 512 ? \
	column("context")*only("size", word(sizes, i))*of(last) : NaN): \
	"step_med_ms":(" ".word(sizes, i)) with labels left \
	offset 0.4, aside(i) font ",7.4"
unset multiplot
