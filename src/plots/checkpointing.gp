# checkpointing.gp: peak and time of a step against blocks run again at a time
height = 66
load "src/plots/style.gp"
set datafile missing NaN
deep(n) = only("nested", n)
K(n) = column("K") > 0 ? column("K")*deep(n) : NaN
set multiplot layout 1,2
set logscale x 2
set xlabel "blocks run again together, K"
set offsets graph 0.04, graph 0.04, 0, 0
set key maxrows 2
set ylabel "peak (GiB)"
set yrange [58:*]
plot table using (K("no")):(column("derived_MiB")/1024) with lines lt 9 \
	title "derived", \
	"" using (K("no")):(column("peak_MiB")/1024) with points lt 1 \
	title "one level", \
	"" using (K("yes")):(column("peak_MiB")/1024) with points lt 2 \
	title "nested"
set ylabel "step (ms)"
set yrange [0:*]
plot table using (K("no")):"step_ms" with linespoints lt 1 title "one level", \
	"" using (K("yes")):"step_ms" with linespoints lt 2 title "nested"
unset multiplot
