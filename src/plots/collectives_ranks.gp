# collectives_ranks.gp: all-reduces of host arrays against the number of ranks
height = 48
load "src/plots/style.gp"
set datafile missing NaN
of(transport, bytes) = column("time_ms")*only("transport", transport) \
	*only("dtype", "fp32")*is("bytes", bytes)
names = "mpi gloo ring"
titles = "'MPI' 'Gloo' 'our ring'"
set tmargin at screen 0.78
do for [k=1:3] {
	set label k word(titles, k) at screen 0.22 + 0.18*k, screen 0.95 \
		point lt k offset 1,0
}
set multiplot layout 1,4
set xrange [1.5:6.5]
set xtics (2, 4, 6)
set yrange [0:*]
set xlabel "processes"
set key off
do for [i=1:4] {
	bytes = 10**(5 + i)
	set title i < 4 ? sprintf("%d MB", 10**(i - 1)) : "1 GB"
	if (i == 1) { set ylabel "time (ms)" } else { unset ylabel }
	plot for [k=1:3] table using "ranks":(of(word(names, k), bytes)) \
		with linespoints lt k
	unset label
}
unset multiplot
