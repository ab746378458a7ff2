# two_nodes.gp: all-reduces over a cable against ranks a node, and over sockets
# against size
height = 52
load "src/plots/style.gp"
set datafile missing NaN
cable(transport) = column("time_ms")*only("link", "1 Gbit/s") \
	*only("transport", transport)*is("bytes", 1e7)
over(link) = column("time_ms")*only("link", link)*is("ranks", 2)
nvlink(dummy) = column("time_ms")*only("transport", "nccl") \
	*only("dtype", "fp32")*is("ranks", 2)
bound(ranks) = 2*(ranks - 1)/ranks*1e7/0.125e9*1e3
set multiplot layout 1,2
set key maxrows 1 width 0 samplen 1.5
set xlabel "ranks a node"
set ylabel "time of 10 MB (ms)"
set xrange [0.7:4.3]
set xtics (1, 2, 4)
set yrange [0:165]
plot table using (column("ranks")/2):(cable("ring")) \
	with linespoints lt 1 title "our ring", \
	"" using (column("ranks")/2):(cable("mpi")) \
	with linespoints lt 2 title "MPI", \
	bound(2*x) with lines lt 9 dt 2 title "fs/w"
set xlabel "size (MB)"
set ylabel "time (ms)"
set logscale xy
set xrange [0.4:1300]
set yrange [0.01:200]
set xtics autofreq
plot table2 using (column("bytes")*1e-6):(over("1 socket")) \
	with linespoints lt 2 title "1 socket", \
	"" using (column("bytes")*1e-6):(over("16 sockets")) \
	with linespoints lt 3 title "16 sockets", \
	table3 using (column("bytes")*1e-6):(nvlink(0)) \
	with linespoints lt 1 title "NVLink"
unset multiplot
