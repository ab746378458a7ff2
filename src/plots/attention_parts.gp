# attention_parts.gp: softmax and the matmuls around it, against context
height = 62
load "src/plots/style.gp"
load "src/plots/rows.gp"
# context, and by size: softmax, both matmuls; ms
parts(size) = rows("context\tsoftmax\tmatmuls", sprintf("\
	c(\"size\") == \"%s\" && c(\"fusion\") == \"eager\" && \
	c(\"status\") == \"ok\" { r = c(\"range\"); T = c(\"context\"); \
	seen[T]; if (r == \"forward softmax\") s[T] = c(\"busy_ms\"); \
	if (r == \"forward scores\" || r == \"forward values\") \
	p[T] += c(\"busy_ms\") } \
	END { for (T in seen) print T, s[T], p[T] | \"sort -n\" }", size)).table
sizes = "small medium large xl 2.7B"
# the bounds: 48 bytes for a score by its 4D FLOPs, D = 64
stats table2 using (column("value")*only("quantity", "copy")) nooutput
copy = STATS_max
stats table2 using (column("value")*only("quantity", "fp32")) nooutput
bound = 48/copy*STATS_max*1e3/256
set multiplot layout 1,2
set logscale xy
set logscale x 2
set xrange [*:*] noextend
set offsets graph 0.04, graph 0.04, 0, 0
set xlabel "context"
set ylabel "xl, forward (ms)"
plot parts("xl") using "context":"softmax" with linespoints lt 2 \
	title "softmax", "" using "context":"matmuls" with linespoints lt 1 \
	title "two matmuls"
set ylabel "time of softmax / time of matmuls"
unset logscale y
set yrange [0:3.6]
set key maxrows 2 samplen 1 width 1.4
plot for [i=1:words(sizes)] parts(word(sizes, i)) \
	using "context":(column("softmax")/column("matmuls")) with linespoints \
	lt i title word(sizes, i), \
	bound with lines lt 9 title "bounds"
unset multiplot
