# attention_time.gp: forward and backward of one head against length, D = 64
height = 72
load "src/plots/style.gp"
set datafile missing NaN
ways = "naive rows tiles wgmma hopper"
exact = "naive rows tiles planes"
stats table using (stringcolumn("dtype") eq "bf16" ? 1 : NaN) nooutput
low = STATS_records > 0 ? "bf16" : "fp32"
ms(dtype, way) = column("both_ms")*only("variant", way) \
	*only("dtype", dtype)*is("d", 64)
set multiplot layout 1,2
set logscale xy
set logscale x 2
set xtics (128, "1 k" 1024, "8 k" 8192, "64 k" 65536)
set xlabel "queries and keys, n"
set ylabel "forward and backward (ms)"
set key maxrows 2
plot for [i=1:words(ways)] table using "n":(ms(low, word(ways, i))) \
	with linespoints lt i title word(ways, i)
plot for [i=1:words(exact)] table using "n":(ms("fp32", word(exact, i))) \
	with linespoints lt i title word(exact, i)
unset multiplot
