# norm_rates.gp: bandwidth of norms against width, as a fraction of a copy
height = 62
load "src/plots/style.gp"
set datafile missing NaN
of(pass, impl, norm) = column(pass."_fraction")*only("impl", impl) \
	*only("norm", norm)
set logscale x 2
set xrange [900:9300]
set xtics (1024, 2048, 4096, 8192)
set yrange [0:1.1]
set xlabel "width of a row"
set key at screen 0.75, screen 0.99 right top vertical maxrows 3 width 1
set tmargin at screen 0.76
set arrow from graph 0, first 1 to graph 1, first 1 nohead lt 9
set multiplot layout 1,2
set title "forward" offset 0, -0.4
set ylabel "fraction of a copy"
plot table using "width":(of("fwd", "ours", "rmsnorm fused")) \
	with linespoints lt 1 title "ours", \
	"" using "width":(of("fwd", "ours", "layernorm")) \
	with linespoints lt 1 dt 2 pt 6 title "ours, LayerNorm", \
	"" using "width":(of("fwd", "ours", "rmsnorm eager")) \
	with linespoints lt 1 dt 3 pt 4 title "ours, eager", \
	"" using "width":(of("fwd", "pytorch-compiled", "RMSNorm")) \
	with linespoints lt 2 dt 1 title "PyTorch, compiled", \
	"" using "width":(of("fwd", "pytorch-native", "RMSNorm")) \
	with linespoints lt 2 dt 2 pt 6 title "PyTorch, native", \
	"" using "width":(of("fwd", "pytorch-eager", "RMSNorm")) \
	with linespoints lt 2 dt 3 pt 4 title "PyTorch, eager"
set title "backward" offset 0, -0.4
set key off
plot table using "width":(of("bwd", "ours", "rmsnorm fused")) \
	with linespoints lt 1 title "ours", \
	"" using "width":(of("bwd", "ours", "layernorm")) \
	with linespoints lt 1 dt 2 pt 6 title "ours, LayerNorm", \
	"" using "width":(of("bwd", "ours", "rmsnorm eager")) \
	with linespoints lt 1 dt 3 pt 4 title "ours, eager"
unset multiplot
