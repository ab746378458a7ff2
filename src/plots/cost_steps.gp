# cost_steps.gp: predicted over measured time of steps, fitted and not
height = 66
load "src/plots/style.gp"
machines = system("awk -F'\t' '!/^#/ && $1 != \"machine\" && !seen[$1]++ " \
	."{ print $1 }' ".table)
off(machine, role) = column("predicted_ms")/column("measured_ms") \
	*only("machine", machine)*only("role", role)
set logscale x
set xrange [4:800]
set xlabel "measured step (ms)"
set ylabel "predicted / measured"
set yrange [0.25:1.75]
set key maxrows 1
plot 1 with lines lt 9 lw 1 notitle, 1.1 with lines lt 9 notitle, \
	0.9 with lines lt 9 notitle, \
	for [i=1:words(machines)] table \
	using "measured_ms":(off(word(machines, i), "test")) with points pt 6 \
	ps 0.5 lc i title word(machines, i).", predicted", \
	for [i=1:words(machines)] table \
	using "measured_ms":(off(word(machines, i), "fit")) with points pt 7 \
	ps 0.5 lc i title word(machines, i).", fitted"
