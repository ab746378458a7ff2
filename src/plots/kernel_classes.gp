# kernel_classes.gp: kernel time by class, for forward, with backward, and a step
height = 66
load "src/plots/style.gp"
load "src/plots/sizes.gp"
names = "matmul attention softmax norm ffn optimizer rest"
labels = "matmul attention softmax norm feed-forward optimizer rest"
# fraction of each class in the first n phases, a line for each size
shares(f, n) = sprintf("<awk -F'\t' '/^#/ { next } !head++ { for (i = 1; \
	i <= NF; i++) at[$i] = i; m = split(\"%s\", c, \" \"); split(\"small \
	medium large xl 2.7B\", sizes, \" \"); for (i in sizes) place[sizes[i]] = i; \
	next } $at[\"fusion\"] == \"%s\" && $at[\"context\"] == \"%d\" && \
	$at[\"status\"] == \"ok\" && \
	index(\"forward backward optimizer\", $at[\"range\"]) && \
	(%d > 1 || $at[\"range\"] == \"forward\") && \
	(%d > 2 || $at[\"range\"] != \"optimizer\") { s = place[$at[\"size\"]]; \
	for (i = 1; i <= m; i++) { x = $at[c[i] \"_ms\"]; t[s, i] += x; \
	all[s] += x } } END { print \"size\t\" \"sums\"; for (s = 1; s <= 5; s++) \
	if (all[s]) { line = s; sum = 0; for (i = 1; i <= m; i++) { \
	sum += t[s, i]; line = line \"\t\" sum/all[s] } print line } }' %s", \
	names, f, middle, n, n, table)
stats table using "context" nooutput
middle = STATS_max >= 512 ? 512 : STATS_max
set multiplot layout 1,3 margins 0.1, 0.98, 0.19, 0.84 spacing 0.06, 0
set yrange [0:1]
set xtics rotate by 30 right
set ylabel "fraction of kernel time"
set key off
set for [i=1:7] linetype i dt 1 # borders are solid
colours = colour_matmul." ".colour_attention." ".colour_softmax." " \
	.colour_norm." ".colour_ffn." ".colour_optimizer." ".colour_rest
do for [i=1:7] {
	left = 0.04 + (i - 1)*0.135 + (i > 5 ? 0.05 : 0)
	set object i rect at screen left, 0.96 size screen 0.02, 0.028 \
		fc rgb word(colours, i)
	set label i word(labels, i) at screen left + 0.015, 0.96
}
do for [n=1:3] {
	set title n == 1 ? "forward" : n == 2 ? "forward and backward" : "step"
	plot for [i=7:1:-1] shares("eager", n) using 1:(column(i + 1)) with boxes \
		fc rgb word(colours, i) fs solid 0.85 border lc rgb "white" lw 0.4
	unset object
	unset label
	unset ylabel
}
unset multiplot
