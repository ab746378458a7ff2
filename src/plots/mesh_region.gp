# mesh_region.gp: axes of a mesh that stay under the bound, and the most devices
height = 62
load "src/plots/style.gp"
of(name) = column(name)*only("hardware", "H100 NVLink")
set datafile missing NaN
stats table using (of("X")):(of("X")*column("Y_of_most_overlapped")) nooutput
last = STATS_max_x
overlapped = STATS_mean_y
stats table using (of("X")):(of("X")*column("Y_of_most_summed")) nooutput
summed = STATS_mean_y
stats table using (of("Y_overlapped")) nooutput
top = STATS_max
stats table using (of("X")):(of("Y_summed")) nooutput
touch = -STATS_intercept/STATS_slope/2
high = 1.3*top
curve(n, x) = n/x <= high ? n/x : NaN
set samples 1000
set lmargin at screen 0.16
set rmargin at screen 0.90
set xrange [0:1.15*last]
set yrange [0:high]
set xtics 100
set ytics 2
set ytics add (1)
unset grid
unset key
set xlabel "FSDP ranks, N_X"
set ylabel "TP ranks, N_Y"
set label 1 "overlapped" at 0.72*last, 0.72*top center front
set label 2 "not overlapped" at 0.27*last, 0.36*top center front
set label 3 sprintf("N = %.0f", summed) at 1.12*summed/(1.2*top), 1.2*top \
	left front
set label 4 sprintf("N = %.0f", overlapped) \
	at 1.06*overlapped/(1.2*top), 1.2*top left front
plot table using (of("X")):(1):(of("Y_overlapped")) with filledcurves fs solid 1 \
	fc rgb "#e4e9f2", \
	"" using (of("X")):(1):(of("Y_summed")) with filledcurves fs solid 1 \
	fc rgb "#b3c0d9", \
	curve(summed, x) with lines lt 2 dt solid, \
	curve(overlapped, x) with lines lt 1, \
	"+" using (touch):(summed/touch) every ::0::0 with points pt 7 ps 0.5 \
	lc rgb "black", \
	"+" using (last):(overlapped/last) every ::0::0 with points pt 7 ps 0.5 \
	lc rgb "black"
