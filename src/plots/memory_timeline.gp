# memory_timeline.gp: memory in use by category, forward alone and in a step
height = 100
load "src/plots/style.gp"
set datafile missing NaN
names = "parameter gradient optimizer activation temporary"
labels = "parameters gradients moments activations temporaries"
colours = colour_parameters." ".colour_gradients." ".colour_state." " \
	.colour_activations." ".colour_temporary
upto(n) = sum [i=1:n] column(word(names, i)."_MiB")/1024
of(f, p, m) = only("fusion", f)*only("precision", p)*only("mode", m)
x(f, p, m) = column("ms")*of(f, p, m)
load "src/plots/rows.gp"
begins(f, p, name) = rows("ms", sprintf("c(\"fusion\") == \"%s\" && \
	c(\"precision\") == \"%s\" && c(\"mode\") == \"step\" && \
	c(\"phase\") == \"%s\" && !n++ { print c(\"ms\") }", f, p, name)).table
do for [i=1:5] {
	set object i rect at screen i*0.17, 0.975 size screen 0.022, 0.018 \
		fc rgb word(colours, i)
	set label i word(labels, i) at screen i*0.17 + 0.02, 0.975
}
set multiplot layout 2,2 margins 0.1, 0.98, 0.1, 0.88 spacing 0.11, 0.19
set ylabel "GiB"
set key off
do for [f in "eager fused"] {
	do for [m in "forward step"] {
		set yrange [*:*]
		stats table using (x(f, "fp32", m)) nooutput
		last = STATS_max
		set xrange [0:last]
		set xtics autofreq
		set ytics m eq "step" ? 10 : 0.1
		set format y m eq "step" ? "%.0f" : "%.1f"
		set yrange [m eq "step" ? 0 : 12.6:*]
		set title (f eq "eager" ? "eager path, " : "fused path, ").(m eq "step" \
			? "a step" : "forward alone") offset 0, 0.4
		unset arrow
		do for [i=11:13] { unset label i }
		if (m eq "step") {
			stats begins(f, "fp32", "backward") using "ms" nooutput
			set arrow from STATS_min, graph 0 to STATS_min, graph 1 nohead front \
				lc rgb "#444444" dt (4, 3)
			set label 11 "forward" at STATS_min*0.5, graph (f eq "eager" ? \
				0.55 : 0.64) center front textcolor rgb "white" \
				font ",7.4" rotate by 90
			set label 12 "backward" at STATS_min*(f eq "eager" ? 3.9 : 3), \
				graph 0.07 center front textcolor rgb "white"
			if (f eq "eager") {
				stats begins(f, "fp32", "optimizer") using "ms" nooutput
				set arrow from STATS_min, graph 0 to STATS_min, graph 1 \
					nohead front lc rgb "#444444" dt (4, 3)
				set label 13 "optimizer" at (STATS_min + last)/2, graph 0.07 \
					center front textcolor rgb "white" font ",7.4"
			}
		}
		set xlabel "time of the host (ms)"
		plot for [i=5:1:-1] table using (x(f, "fp32", m)):(upto(i)) \
			with filledcurves x1 fc rgb word(colours, i)
		unset object
		do for [i=1:5] { unset label i }
	}
}
unset multiplot
