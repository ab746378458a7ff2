# mixed_speedup.gp: speed of each policy against fp32, by size
height = 58
load "src/plots/style.gp"
load "src/plots/sizes.gp"
array base[5]
x(p) = index_of(stringcolumn("size"))*only("precision", p)
# how many times as fast; a size that does not train has no time
times(size, phase) = index_of(size) > 0 \
	? base[index_of(size)]/column(phase."_ms") : NaN
set yrange [0:*]
set xtics rotate by 30 right
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
