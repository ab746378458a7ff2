# attention_rate.gp: TFLOP/s of one head against length, the peak, and cuDNN
height = 66
load "src/plots/style.gp"
set datafile missing NaN
stats table using (stringcolumn("variant") eq "warp_specialized" ? 1 : NaN) \
	nooutput
gpu = STATS_records > 0
kernel = gpu ? "warp_specialized" : "tiled"
stats table3 using (column("value")*only("quantity", gpu ? "bf16" : "fp32")) \
	nooutput
peak = STATS_max
rate(pass, d) = column(pass . "_GFLOP")/column(pass . "_ms") \
	*only("variant", kernel)*is("d", d)
cudnn(pass, d) = column("n")*(column("n") + 1)/2*d*(pass eq "fwd" ? 4 : 10) \
	/column(pass . "_ms")*1e-9*only("variant", "pytorch-cudnn") \
	*is("heads", 1)*is("d", d)
set multiplot layout 1,2
set logscale x 2
set xrange [110:75000]
set xtics (128, "1 k" 1024, "8 k" 8192, "64 k" 65536)
set yrange [0:peak*1.08]
set xlabel "queries and keys, n"
set key maxrows 2 samplen 1.3 width 0
widths = "16 32 64 128"
set arrow from graph 0, first peak to graph 1, first peak nohead lt 9
set label 1 "peak of a matmul" at graph 0.03, first peak*0.95 left
if (gpu) {
	set label 2 "circles: cuDNN, same D" at graph 0.03, first peak*0.86 left
}
do for [pass in "fwd bwd"] {
	set ylabel (pass eq "fwd" ? "forward" : "backward")." (TFLOP/s)"
	if (gpu) {
		plot for [i=1:4] table using "n":(rate(pass, word(widths, i) + 0)) \
			with linespoints lt i title "D = ".word(widths, i), \
			for [i=2:4] table2 using "n":(cudnn(pass, word(widths, i) + 0)) \
			with points lt i pt 6 ps 1.1 lw 2 notitle
	} else {
		plot for [i=1:4] table using "n":(rate(pass, word(widths, i) + 0)) \
			with linespoints lt i title "D = ".word(widths, i)
	}
	unset label 1
	unset label 2
}
unset multiplot
