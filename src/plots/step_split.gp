# step_split.gp: fractions of a step by class of operation, and roofline bounds
height = 62
load "src/plots/style.gp"
sizes = "small medium large xl 2.7B"
index_of(name) = sum [i=1:words(sizes)] (word(sizes, i) eq name ? i : 0)
rate(q) = sprintf("<awk -F'\t' 'BEGIN { print \"rate\" } \
	$1 == \"%s\" { print $2 }' %s", q, table2)
stats rate("copy") using 1 nooutput
copy = STATS_max
stats rate("bf16") using 1 nooutput
low = STATS_max
stats rate("fp32") using 1 nooutput
total(dummy) = column("linear_ms") + column("attention_ms") \
	+ column("elementwise_ms") + column("optimizer_ms")
x(p) = index_of(stringcolumn("size"))*only("precision", p)
first(dummy) = column("linear_ms")/total(0)
second(dummy) = first(0) + column("attention_ms")/total(0)
third(dummy) = second(0) + column("elementwise_ms")/total(0)
set multiplot layout 1,2
set ylabel "fraction of the step"
set yrange [0:1]
set xrange [0.4:words(sizes) + 0.6]
set xtics ("small" 1, "medium" 2, "large" 3, "xl" 4, "2.7B" 5) scale 0 \
	rotate by 30 right
set key maxrows 2
do for [p in "bf16 fp32"] {
	flops = p eq "bf16" ? low : STATS_max
	size = p eq "bf16" ? 30 : 28
	bound(dummy) = (column("linear_GFLOP")/flops \
		+ column("parameters")*size/copy*1e-6)/total(0)
	plot table using (x(p)):(1) with boxes lt 4 title "optimizer", \
		"" using (x(p)):(third(0)) with boxes lt 3 title "elementwise", \
		"" using (x(p)):(second(0)) with boxes lt 2 title "attention", \
		"" using (x(p)):(first(0)) with boxes lt 1 title "linear", \
		"" using (x(p)):(bound(0)) with points pt 7 ps 0.5 lc rgb "black" \
		title "bounds"
}
unset multiplot
