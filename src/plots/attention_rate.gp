# attention_rate.gp: TFLOP/s of one head against length, for all head sizes
height = 62
load "src/plots/style.gp"
set datafile missing NaN
stats table using (stringcolumn("variant") eq "warp_specialized" ? 1 : NaN) \
	nooutput
kernel = STATS_records > 0 ? "warp_specialized" : "tiled"
rate(pass, d) = column(pass . "_GFLOP")/column(pass . "_ms") \
	*only("variant", kernel)*is("d", d)
set multiplot layout 1,2
set logscale x 2
set xrange [110:75000]
set xtics (128, "1 k" 1024, "8 k" 8192, "64 k" 65536)
set yrange [0:*]
set xlabel "queries and keys, n"
set ylabel "forward (TFLOP/s)"
widths = "16 32 64 128"
plot for [i=1:4] table using "n":(rate("fwd", word(widths, i) + 0)) \
	with linespoints lt i title "D = " . word(widths, i)
set ylabel "backward (TFLOP/s)"
plot for [i=1:4] table using "n":(rate("bwd", word(widths, i) + 0)) \
	with linespoints lt i title "D = " . word(widths, i)
unset multiplot
