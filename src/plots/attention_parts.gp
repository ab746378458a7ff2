# attention_parts.gp: softmax and the products around it, against context
height = 62
load "src/plots/style.gp"
# context, and by size: softmax, both products; ms
parts(size) = sprintf("<awk -F'\t' '/^#/ { next } !head++ { for (i = 1; \
	i <= NF; i++) at[$i] = i; print \"context\tsoftmax\tproducts\"; next } \
	$at[\"size\"] == \"%s\" && $at[\"fusion\"] == \"none\" && \
	$at[\"status\"] == \"ok\" { r = $at[\"range\"]; T = $at[\"context\"]; \
	seen[T]; if (r == \"forward softmax\") s[T] = $at[\"busy_ms\"]; \
	if (r == \"forward scores\" || r == \"forward values\") \
	p[T] += $at[\"busy_ms\"] } END { for (T in seen) print T \"\t\" s[T] \
	\"\t\" p[T] | \"sort -n\" }' %s", size, table)
sizes = "small medium large xl 2.7B"
set multiplot layout 1,2
set logscale xy
set logscale x 2
set xrange [*:*] noextend
set offsets graph 0.04, graph 0.04, 0, 0
set xlabel "context"
set ylabel "xl, forward (ms)"
plot parts("xl") using "context":"softmax" with linespoints lt 2 \
	title "softmax", "" using "context":"products" with linespoints lt 1 \
	title "two products"
set ylabel "softmax over products, in time"
unset logscale y
set yrange [0:2.5]
set key maxrows 2
plot for [i=1:words(sizes)] parts(word(sizes, i)) \
	using "context":(column("softmax")/column("products")) with linespoints \
	lt i title word(sizes, i)
unset multiplot
