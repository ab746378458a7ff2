# cluster_bounds.gp: times of a pass against devices, and the bounds
height = 66
load "src/plots/style.gp"
set datafile missing NaN
links = "NVLink NIC"
of(link, pass, name) = column(name)*only("hardware", "H100 ".link) \
	*only("pass", pass)
ratio(dummy) = column("GBps")/column("TFLOPs")*1e-3
backward(dummy) = 1 + column("batch")*ratio(0)
forward(dummy) = 1 + 1.5*column("d_ff")*ratio(0)
bound(pass) = pass eq "forward" ? forward(0) : backward(0)
crossing(link, pass) = bound(pass)*of(link, pass, "N")*is("N", 1)
at_bound(pass) = column("compute_ms")*column("N")/bound(pass)
low = 0.03
end = 4300
rise(most, x) = low*(most/2/low)**(log(x)/log(end))
array most[2]
set multiplot layout 1,2
set xrange [1:end]
set yrange [low:1000]
set xtics ("1" 1, "4" 4, "16" 16, "64" 64, "256" 256, "1 k" 1024, "4 k" 4096)
set xlabel "devices, N"
set ylabel "time of a pass (ms)"
set key maxrows 2 width 0 samplen 1.3
do for [pass in "backward forward"] {
	file = pass eq "forward" ? table2 : table
	unset logscale
	do for [i=1:2] {
		stats file using (of(word(links, i), pass, "send_ms") \
			*is("N", 2)*2) nooutput
		most[i] = STATS_max
	}
	set logscale x 2
	set logscale y
	set title (pass eq "forward" ? "tensor" : "data")." parallel, ".pass
	plot for [i=1:2] "+" using (1/(1 - rise(most[i], $1)/most[i])): \
		(rise(most[i], $1)) with lines lt 9 notitle, \
		file using "N":(of("NVLink", pass, "compute_ms")) with lines \
		lt 1 title "computing", \
		for [i=1:2] file using "N":(of(word(links, i), pass, "send_ms")) \
		with lines lt i + 1 title "over ".word(links, i), \
		for [i=1:2] file using (crossing(word(links, i), pass)): \
		(at_bound(pass)) with points pt 7 ps 0.5 lc rgb "black" \
		title (i == 1 ? "bound" : ""), \
		for [i=1:2] file using (crossing(word(links, i), pass)): \
		(at_bound(pass)):(sprintf("%.3g", bound(pass))) with labels left \
		font ",7.4" offset 0.5, (pass eq "forward" && i == 2 ? 1.4 : 0.7) \
		notitle
}
unset multiplot
