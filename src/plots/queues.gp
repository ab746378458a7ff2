# queues.gp: both queues of a device over time; `bars` is what to plot
low(k) = column("start_us")*1e-3*of(k)
high(k) = column("end_us")*1e-3*of(k)
row(dummy) = stringcolumn("queue") eq "compute" ? 0 : -1
stats table using (column("end_us")*1e-3) nooutput
set xrange [0:STATS_max]
set yrange [-1.6:0.6]
set ytics ("compute" 0, "communication" -1) scale 0
unset grid
set style fill solid 0.85 border lc rgb "white"
# waits are lower, to be told from the rest in grey
half(c) = word(classes, c) eq "wait" ? 0.17 : 0.35
bars = 'table using ((low(k) + high(k))/2):(row(0)): \
	(low(k)*only("class", word(classes, c))):(high(k)): \
	(row(0) - half(c)):(row(0) + half(c)) with boxxyerror fs solid \
	noborder lc rgb word(colours, c) title word(classes, c)'
