# cost_scaling.gp: steps and the fraction of peak on more and more devices
height = 66
load "src/plots/style.gp"
models = "xl 8B 70B 405B"
of(name, hardware, model) = column(name)*only("mode", "strong") \
	*only("hardware", hardware)*only("model", model)
set multiplot layout 1,2
set logscale x 2
set xrange [1:2**17]
set xtics ("1" 1, "16" 16, "256" 256, "4 k" 4096, "64 k" 65536)
set xlabel "devices"
set key maxrows 2 samplen 1.8 width 0
set logscale y
set format y "10^{%T}"
set ylabel "step (ms)"
plot for [i=1:4] table using "devices":(of("step_ms", "H100", word(models, i))) \
	with linespoints lt i dt 1 ps 0.4 title word(models, i), \
	for [i=1:4] table using "devices":(of("step_ms", "B200", word(models, i))) \
	with lines lt i lw 1.2 dt (2, 3) notitle
unset logscale y
set format y "%g"
set yrange [0:*]
set ylabel "MFU (%)"
plot for [i=1:4] table \
	using "devices":(100*of("mfu", "H100", word(models, i))) \
	with linespoints lt i dt 1 ps 0.4 notitle, \
	for [i=1:4] table using "devices":(100*of("mfu", "B200", word(models, i))) \
	with lines lt i lw 1.2 dt (2, 3) notitle, \
	NaN with lines lc rgb "#444444" dt 1 title "H100", \
	NaN with lines lc rgb "#444444" dt (2, 3) title "B200"
unset multiplot
