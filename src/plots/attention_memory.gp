# attention_memory.gp: peak memory against length, by matrices and in tiles
height = 60
load "src/plots/style.gp"
set datafile missing NaN
stats table using (stringcolumn("variant") eq "planes" ? 1 : NaN) nooutput
exact = STATS_records > 0 ? "planes" : "tiles"
peak(dtype, way) = column("peak_MiB")*only("variant", way) \
	*only("dtype", dtype)*is("d", 64)
set logscale xy
set logscale x 2
set xtics (128, "1 k" 1024, "8 k" 8192, "64 k" 65536)
set xlabel "queries and keys, n"
set ylabel "peak (MiB)"
set key maxcols 2
plot table using "n":(peak("fp32", "naive")) with linespoints lt 2 \
	title "naive, fp32", \
	"" using "n":(peak("fp32", exact)) with linespoints lt 3 \
	title exact . ", fp32", \
	"" using "n":(peak("bf16", "naive")) with linespoints lt 5 \
	title "naive, bf16", \
	"" using "n":(peak("bf16", "hopper")) with linespoints lt 1 \
	title "hopper, bf16"
