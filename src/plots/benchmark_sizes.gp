# benchmark_sizes.gp: phases of a step by size, and its time against context
height = 66
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
set multiplot layout 1,3 margins 0.095, 0.985, 0.2, 0.86 spacing 0.11, 0
set yrange [0:1]
set xtics rotate by 30 right
set ylabel "fraction of the step" offset 0.5, 0
unset key
do for [p in "'fp32 eager' 'LAST'"] {
	if (p eq "LAST") { p = last; unset ylabel }
	set title word(p, 1).", ".word(p, 2).", ms above" offset 0, 0.5
	plot table using (x(p)):(sums(3)) with boxes lc rgb colour_optimizer, \
		"" using (x(p)):(sums(2)) with boxes lc rgb colour_backward, \
		"" using (x(p)):(sums(1)) with boxes lc rgb colour_forward, \
		"" using (x(p)):(1):(digits(column("step_med_ms"))) with labels \
		font ",7" offset 0, 0.5, \
		"" using (x(p)*only("size", "large")):(sums(1)/2):("fwd") with labels \
		font ",7", \
		"" using (x(p)*only("size", "large")):((sums(1) + sums(2))/2): \
		("bwd") with labels font ",7" textcolor rgb "white", \
		"" using (x(p)*only("size", "large")):((sums(3) + sums(2))/2): \
		("opt") with labels font ",7" textcolor rgb "white"
}
set title word(last, 1).", ".word(last, 2) offset 0, 0.5
set ylabel "step (ms)" offset 1, 0
set logscale x 2
set logscale y
set autoscale
set xrange [*:*] noextend
set offsets 0, graph 0.42, 0, 0
set xtics auto norotate center scale 0.5 font ",7"
set xlabel "context"
plot for [i=1:words(sizes)] table \
	using (column("context")*only("size", word(sizes, i))*of(last)): \
	"step_med_ms" with linespoints lt i, \
	for [i=1:words(sizes)] table using (column("context") > 512 ? \
	column("context")*only("size", word(sizes, i))*of(last) : NaN): \
	"step_med_ms":(" ".word(sizes, i)) with labels left offset 0.4, 0 font ",7"
unset multiplot
