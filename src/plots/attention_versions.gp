# attention_versions.gp: rates of our versions, PyTorch's kernels and cuDNN
height = 62
load "src/plots/style.gp"
set datafile missing NaN
names = "pytorch-efficient pytorch-flash2 pytorch-cudnn - naive mma_sync \
wgmma warp_specialized warp_specialized-atomic"
labels = "'PyTorch, efficient' 'PyTorch, flash2' 'cuDNN' '' 'naive' \
'v2 mma_sync' 'v3 wgmma' 'v4' 'v4, atomic'"
place(dummy) = sum [i=1:words(names)] \
	(word(names, i) eq stringcolumn("variant") ? i : 0)
chosen(dummy) = is("heads", 16)*is("n", 16384)*is("d", 128)
GFLOP(pass) = column("heads")*column("n")*(column("n") + 1)/2*column("d") \
	*(pass eq "fwd" ? 4 : 10)/1e9*chosen(0)
rate(pass) = GFLOP(pass)/column(pass."_ms")
again(pass) = GFLOP(pass)/column(pass."_replay_ms")
hex(c) = int("0x".c[2:7])
shade(i) = hex(i == 1 ? colour_ours : i == 2 ? colour_pytorch : colour_cudnn)
by(dummy) = stringcolumn("variant") eq "pytorch-cudnn" ? 3 \
	: stringcolumn("by") eq "ours" ? 1 : 2
stats table2 using (column("value")*only("quantity", "bf16")) nooutput
peak = STATS_max
set yrange [0.4:words(names) + 0.6]
set ytics () scale 0 noenhanced
set for [i=1:words(names)] ytics add (word(labels, i) i)
set xrange [0:860]
set xtics 200
unset grid
unset key
set arrow from peak, graph 0 to peak, graph 1 nohead lt 9 front
set multiplot layout 1,2 margins 0.2, 0.98, 0.15, 0.9 spacing 0.06, 0
set label 1 "peak" at peak, graph 1.03 center font ",7.4"
set xlabel "TFLOP/s"
do for [pass in "fwd bwd"] {
	set title pass eq "fwd" ? "forward" : "backward"
	plot table using (rate(pass)/2):(place(0)):(0):(rate(pass)): \
		(place(0) - 0.36):(place(0) + 0.36):(shade(by(0))) \
		with boxxyerror lc rgb variable, \
		"" using (again(pass)):(place(0)):(0):(0.5) with vectors nohead \
		lc rgb "black" lw 1.5, \
		"" using (again(pass)):(place(0)):(0):(-0.5) with vectors nohead \
		lc rgb "black" lw 1.5, \
		"" using (rate(pass) > 60 ? 14 : rate(pass) > 0 ? 44 : NaN):(place(0)): \
		(sprintf("%.0f", rate(pass))):(rate(pass) > 60 ? 0xffffff : 0) \
		with labels left font ",7.4" textcolor rgb variable
	unset ytics
}
unset multiplot
