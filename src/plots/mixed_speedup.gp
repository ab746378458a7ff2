# mixed_speedup.gp: speed of each policy against fp32, by size
height = 58
load "src/plots/style.gp"
sizes = "small medium large xl 2.7B"
place(name) = sum [i=1:words(sizes)] (word(sizes, i) eq name ? i : 0)
array base[5]
x(p) = place(stringcolumn("size"))*only("precision", p)
# how many times as fast; a size that does not train has no time
times(size, phase) = place(size) > 0 \
	? base[place(size)]/column(phase."_ms") : NaN
set xrange [0.6:words(sizes) + 0.4]
set yrange [0:*]
set xtics ("small" 1, "medium" 2, "large" 3, "xl" 4, "2.7B" 5) scale 0 \
	rotate by 30 right
set key samplen 1.4 width 0
set tmargin 4.4
set ylabel "speed-up over fp32"
set datafile missing NaN
set multiplot layout 1,3
do for [phase in "fwd bwd step"] {
	do for [i=1:words(sizes)] {
		stats table using (column(phase."_ms")*only("precision", "fp32") \
			*only("size", word(sizes, i))) nooutput
		base[i] = STATS_max
	}
	set title (phase eq "fwd" ? "forward pass" : phase eq "bwd" \
		? "backward pass" : "whole step") offset 0, 0.6
	plot for [p in "tf32 fp16 bf16"] table \
		using (x(p)):(times(stringcolumn("size"), phase)) \
		with linespoints lt (p eq "tf32" ? 3 : p eq "fp16" ? 2 : 4) title p
	unset key
	unset ylabel
}
unset multiplot
