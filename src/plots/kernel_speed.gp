# kernel_speed.gp: the share of a copy's bandwidth that operations reach
height = 85
load "src/plots/style.gp"
set lmargin 21
names = "'adamw' 'cross-entropy' 'swiglu backward' 'swiglu forward' " \
	. "'softmax backward' 'softmax forward' 'rope' 'rmsnorm backward' " \
	. "'rmsnorm forward'"
set xlabel "fraction of a copy"
set xrange [0:*]
set yrange [0.5:words(names) + 0.5]
set ytics () scale 0
set for [i=1:words(names)] ytics add (word(names, i) i)
stats table using (stringcolumn("precision") eq "bf16" ? 1 : NaN) nooutput
precision = STATS_records > 0 ? "bf16" : "fp32"
place(dummy) = sum [i=1:words(names)] \
	(word(names, i) eq stringcolumn("op") ? i : 0)
share(name) = column("fraction")*only("path", "fused")*only("size", name) \
	*only("precision", precision)
set arrow from 1, graph 0 to 1, graph 1 nohead lt 9
plot for [i=1:3] table using (share(word("small large 2.7B", i))):(place(0)) \
	with points lt i pt i title word("small large 2.7B", i)
