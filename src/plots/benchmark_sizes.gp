# benchmark_sizes.gp: step time against size, and against context
height = 66
load "src/plots/style.gp"
sizes = "small medium large xl 2.7B"
index_of(name) = sum [i=1:words(sizes)] (word(sizes, i) eq name ? i : 0)
stats table using "context" nooutput
middle = STATS_max > 512 ? 512 : STATS_max
stats table using (column("step_ms")*only("precision", "bf16")) nooutput
chosen = STATS_records > 0 ? "bf16" : "fp32"
path = STATS_records > 0 ? "fused" : "eager"
x(dummy) = index_of(stringcolumn("size")) * is("context", middle)
on_path(p, f) = only("precision", p) * only("fusion", f)
set multiplot layout 1,2
set ylabel "step (ms)"
set logscale y
set xrange [0.6:words(sizes) + 0.4]
set xtics ("small" 1, "medium" 2, "large" 3, "xl" 4, "2.7B" 5) scale 0 \
	rotate by 30 right
set key maxrows 2
set datafile missing NaN
plot table using (x(0)*on_path("fp32", "eager")):"step_ms" with linespoints lt 1 \
	title "fp32, eager", \
	"" using (x(0)*on_path("fp32", "fused")):"step_ms" with linespoints lt 2 \
	title "fp32, fused", \
	"" using (x(0)*on_path("bf16", "eager")):"step_ms" with linespoints lt 3 \
	title "bf16, eager", \
	"" using (x(0)*on_path("bf16", "fused")):"step_ms" with linespoints lt 4 \
	title "bf16, fused"
set logscale x 2
set autoscale x
set xrange [*:*] noextend
set xtics auto norotate center scale 0.5
set xlabel "context"
plot for [i=1:words(sizes)] table \
	using (column("context")*only("size", word(sizes, i)) \
	*on_path(chosen, path)):"step_ms" with linespoints lt i title word(sizes, i)
unset multiplot
