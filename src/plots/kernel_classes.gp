# kernel_classes.gp: kernel time by class, for forward, with backward, and a step
height = 66
load "src/plots/style.gp"
load "src/plots/sizes.gp"
names = "matmul attention softmax norm ffn optimizer rest"
labels = "matmul attention softmax norm feed-forward optimizer rest"
load "src/plots/rows.gp"
# by size: for each class the fraction of it and of those before it, in the
# first n phases
columns = "size"
do for [name in names] { columns = columns."\t".name }
shares(f, n) = rows(columns, sprintf("\
	BEGIN { m = split(\"%s\", names, \" \"); split(\"%s\", sizes, \" \"); \
	for (i in sizes) place[sizes[i]] = i } \
	c(\"fusion\") == \"%s\" && c(\"context\") == \"%d\" && \
	c(\"status\") == \"ok\" && \
	index(\"forward backward optimizer\", c(\"range\")) && \
	(%d > 1 || c(\"range\") == \"forward\") && \
	(%d > 2 || c(\"range\") != \"optimizer\") { s = place[c(\"size\")]; \
	for (i = 1; i <= m; i++) { x = c(names[i] \"_ms\"); t[s, i] += x; \
	all[s] += x } } END { for (s = 1; s <= 5; s++) \
	if (all[s]) { line = s; sum = 0; for (i = 1; i <= m; i++) { \
	sum += t[s, i]; line = line \"\t\" sum/all[s] } print line } }", \
	names, sizes, f, middle, n, n)).table
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
	plot for [i=7:1:-1] shares("eager", n) using "size": \
		(column(word(names, i))) with boxes \
		fc rgb word(colours, i) fs solid 0.85 border lc rgb "white" lw 0.4
	unset object
	unset label
	unset ylabel
}
unset multiplot
