# allocation_sizes.gp: the largest allocations of a forward pass, and where
height = 108
load "src/plots/style.gp"
load "src/plots/rows.gp"
largest(f) = rows("name\tMiB\tcount", sprintf("c(\"fusion\") == \"%s\" && \
	c(\"precision\") == \"fp32\" && c(\"mode\") == \"forward\" && \
	n++ < 12 { p = c(\"ranges\"); gsub(/, layer/, \"\", p); \
	print c(\"tensor\") \" (\" p \")\", c(\"MiB\"), c(\"allocations\") }", \
	f)).table
unset grid
set grid xtics
set key off
set ytics font ",7.4"
set xlabel "MiB"
set multiplot layout 2,1 margins 0.47, 0.95, 0.09, 0.94 spacing 0, 0.2
do for [f in "eager fused"] {
	set autoscale
	set title f eq "eager" ? "eager path" : "fused path"
	stats largest(f) using "MiB" nooutput
	set yrange [-11.6:0.6]
	set xrange [0:STATS_max*1.15]
	plot largest(f) using (column("MiB")/2):(-$0):(0):"MiB":(-$0 - 0.38): \
		(-$0 + 0.38):ytic(stringcolumn("name")) with boxxyerror \
		lc rgb "#1b3560", \
		"" using "MiB":(-$0):(sprintf(" × %d", column("count"))) \
		with labels left font ",7.4"
}
unset multiplot
