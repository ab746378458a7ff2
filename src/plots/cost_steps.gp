# cost_steps.gp: the model's over the measured time of steps, by role
height = 66
load "src/plots/style.gp"
load "src/plots/rows.gp"
machines = system(by_name."!seen[c(\"machine\")]++ { print c(\"machine\") }' " \
	.table)
off(machine, role) = column("predicted_ms")/column("measured_ms") \
	*only("machine", machine)*only("role", role)
said(machine) = column("ahead_ms")/column("measured_ms") \
	*only("machine", machine)*only("role", "predicted")
set logscale x
set xrange [3:1100]
set xlabel "measured step (ms)"
set ylabel "predicted / measured"
set yrange [*<0.5:1.3<*]
set ytics 0.1
set key maxrows 2
plot 1 with lines lt 9 lw 1 notitle, 1.1 with lines lt 9 notitle, \
	0.9 with lines lt 9 notitle, \
	for [i=1:words(machines)] table \
	using "measured_ms":(off(word(machines, i), "checked")) with points pt 6 \
	ps 0.5 lc i title word(machines, i).", checked", \
	for [i=1:words(machines)] table \
	using "measured_ms":(off(word(machines, i), "fitted")) with points pt 7 \
	ps 0.5 lc i title word(machines, i).", fitted", \
	table using "measured_ms":(said(word(machines, 1))) with points pt 8 \
	ps 0.7 lc 3 title word(machines, 1).", predicted"
