# attention_time.gp: forward and backward of one head against length, D = 64
height = 72
load "src/plots/style.gp"
set datafile missing NaN
stats table using (stringcolumn("variant") eq "mma_sync" ? 1 : NaN) nooutput
loops = STATS_records > 0 ? "simt mma_sync" : "tiled"
kernels = "naive " . loops . " wgmma warp_specialized"
exact = "naive " . loops . " split_fp16"
stats table using (stringcolumn("dtype") eq "bf16" ? 1 : NaN) nooutput
low = STATS_records > 0 ? "bf16" : "fp32"
replayed(dummy) = column("fwd_replay_ms") + column("bwd_replay_ms")
ms(dtype, kernel) = (replayed(0) > 0 ? replayed(0) : column("both_ms")) \
	*only("variant", kernel)*only("dtype", dtype)*is("d", 64)
set multiplot layout 1,2
set logscale xy
set logscale x 2
set xrange [110:2000000]
set xtics (128, "1 k" 1024, "8 k" 8192, "64 k" 65536)
set xlabel "queries and keys, n"
set ylabel "forward and backward (ms)"
unset key
# all are ours: naive grey, the versions from light to dark
colour_of(kernel) = kernel eq "naive" ? colour_eager \
	: kernel eq "simt" || kernel eq "tiled" ? "#9db0cf" \
	: kernel eq "mma_sync" ? "#7a9bd1" : kernel eq "wgmma" ? "#4a6aa5" \
	: colour_ours
# a name at the end of its line
at_end(kernel) = column("n") == (kernel eq "simt" ? 8192 : 65536) ? 1 : NaN
aside(kernel) = kernel eq "simt" ? -2.2 : 1
above(kernel) = kernel eq "simt" ? 0.8 : kernel eq "wgmma" ? 0.25 \
	: kernel eq "warp_specialized" ? -0.4 : 0
do for [p in "low exact"] {
	drawn = p eq "low" ? kernels : exact
	dtype = p eq "low" ? low : "fp32"
	set title dtype
	plot for [i=1:words(drawn)] table using "n":(ms(dtype, word(drawn, i))) \
		with linespoints lt (word(drawn, i) eq "naive" ? 6 : i) dt 1 \
		lc rgb colour_of(word(drawn, i)), \
		for [i=1:words(drawn)] table using (column("n") \
		*at_end(word(drawn, i))):(ms(dtype, word(drawn, i))): \
		(word(drawn, i)) with labels left noenhanced font ",7.4" \
		offset aside(word(drawn, i)), above(word(drawn, i))
	unset ylabel
}
unset multiplot
