# attention_memory.gp: peak memory against length, naive and FlashAttention
height = 60
load "src/plots/style.gp"
set datafile missing NaN
stats table using (stringcolumn("variant") eq "split_fp16" ? 1 : NaN) nooutput
exact = STATS_records > 0 ? "split_fp16" : "tiled"
peak(dtype, kernel) = column("peak_MiB")*only("variant", kernel) \
	*only("dtype", dtype)*is("d", 64)
set logscale xy
set logscale x 2
set xrange [110:75000]
set xtics (128, "1 k" 1024, "8 k" 8192, "64 k" 65536)
set xlabel "queries and keys, n"
set ylabel "peak (MiB)"
set key noenhanced maxcols 2
# fp32 has dashes and open marks
plot table using "n":(peak("fp32", "naive")) with linespoints lt 6 \
	dt (8, 3) lc rgb colour_eager title "naive, fp32", \
	"" using "n":(peak("fp32", exact)) with linespoints lt 5 dt (8, 3) \
	lc rgb colour_ours title exact . ", fp32", \
	"" using "n":(peak("bf16", "naive")) with linespoints lt 2 dt 1 \
	lc rgb colour_eager title "naive, bf16", \
	"" using "n":(peak("bf16", "warp_specialized")) with linespoints lt 1 \
	dt 1 lc rgb colour_ours title "warp_specialized, bf16"
