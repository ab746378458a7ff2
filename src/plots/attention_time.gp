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
set xrange [110:75000]
set xtics (128, "1 k" 1024, "8 k" 8192, "64 k" 65536)
set xlabel "queries and keys, n"
set ylabel "forward and backward (ms)"
set key noenhanced maxrows 2
plot for [i=1:words(kernels)] table using "n":(ms(low, word(kernels, i))) \
	with linespoints lt i title word(kernels, i)
plot for [i=1:words(exact)] table using "n":(ms("fp32", word(exact, i))) \
	with linespoints lt (word(exact, i) eq "split_fp16" ? 6 : i) \
	title word(exact, i)
unset multiplot
