# ddp_buckets.gp: step against the size of buckets, measured and simulated
height = 66
load "src/plots/style.gp"
set datafile missing NaN
set multiplot layout 1,2
set logscale x
set format x "%g"
set xlabel "bucket (MB)"
set ylabel "step (ms)"
set offsets 0, 0, graph 0.08, 0
stats table using "step_ms" nooutput
most = STATS_max*1.1
stats table using "single_ms" nooutput
least = STATS_min*0.9
stats table using (stringcolumn("sums") eq "optimizer" ? 1 : 0) nooutput
set yrange [least:most]
crosses = STATS_sum == 0 ? "" : ", table using (other(0)):'step_ms' " \
	. "with points lt 3 pt 2 title 'sums in AdamW'"
set key maxrows (crosses eq "" ? 2 : 3) width -1 samplen 1.2
do for [w in "fp32 bf16"] {
	set title w . " on the wire"
	mine(dummy) = column("bucket_mb")*only("wire", w)*only("sums", "comm")
	other(dummy) = column("bucket_mb")*only("wire", w)*only("sums", "optimizer")
	plot table using (mine(0)):"single_ms" with lines lt 6 \
		title "one rank", \
		"" using (mine(0)):"ideal_ms" with lines lt 9 title "no stretch", \
		"" using (mine(0)):"simulated_ms" with lines lt 2 \
		title "simulated", \
		"" using (mine(0)):"step_ms" with points lt 1 title "measured" @crosses
	unset ylabel
}
unset multiplot
