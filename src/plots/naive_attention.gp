# naive_attention.gp: time and memory of naive attention against length, D = 64
height = 66
load "src/plots/style.gp"
set datafile missing NaN
head(key) = system("sed -n 's/^# ".key.": //p' ".table)
capacity = head("backend") eq "cuda" ? real(head("memory_MiB"))/1024 : 1.0
of(pass, name) = column(name)*only("pass", pass)*is("d", 64)
saved(n) = 4.0*8*(4*n*64 + n*n)/2**30
matrices = head("backend") eq "cuda" ? 3 : 2
peak(n) = 4.0*8*(8*n*64 + matrices*n*n)/2**30
set multiplot layout 1,2
set logscale xy
set logscale x 2
set xtics ("256" 256, "1 k" 1024, "4 k" 4096, "16 k" 16384, "64 k" 65536)
set xlabel "queries and keys, n"
set ylabel "time of a pass (ms)"
set key maxrows 1
plot table using "n":(of("forward", "ms")) with linespoints lt 1 \
	lc rgb colour_forward title "forward", \
	"" using "n":(of("backward", "ms")) with linespoints lt 2 \
	lc rgb colour_backward title "backward"
set ylabel "memory (GiB)"
plot table using "n":(of("forward", "before_MiB")/1024) with points lt 1 \
	lc rgb colour_forward title "saved", \
	"" using "n":(of("backward", "peak_MiB")/1024) with points lt 2 \
	lc rgb colour_backward title "peak, backward", \
	"" using "n":(saved(column("n"))*is("d", 64)) with lines lt 9 lw 1.5 \
	notitle, \
	"" using "n":(peak(column("n"))*is("d", 64)) with lines lt 9 lw 1.5 \
	notitle, \
	"" using "n":(capacity*is("d", 64)) with lines lt 6 notitle
unset multiplot
