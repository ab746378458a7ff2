# sharding_memory.gp: memory of a rank by category and strategy, and predictions
height = 74
load "src/plots/style.gp"
load "src/plots/rows.gp"
# strategy, five categories, prediction; of the first size
held = "parameter gradient optimizer activation temporary derived"
columns = "strategy"
do for [name in held] { columns = columns."\t".name }
stacks(p) = rows(columns, sprintf("!size { size = c(\"size\") } \
	c(\"size\") == size && c(\"precision\") == \"%s\" && \
	c(\"status\") == \"ok\" { \
	s = c(\"strategy\"); if (s == \"fsdp\") s = s \" \" c(\"prefetch\"); \
	if (c(\"sums\") == \"optimizer\") s = s \", AdamW\"; \
	n = split(\"%s\", w, \" \"); \
	for (i = 1; i <= n; i++) s = s \"\t\" c(w[i] \"_MiB\"); \
	print s }", p, held)).table
set style data histogram
set style histogram rowstacked
set boxwidth 0.7 relative
set yrange [0:*]
set offsets 0, 0, graph 0.04, 0
set xtics rotate by 40 right scale 0 font ",7.4"
set key at screen 0.12, screen 0.99 left top maxrows 2 width 0
set tmargin at screen 0.78
found = system(by_name."!seen[c(\"precision\")]++ { \
	printf \"%s \", c(\"precision\") }' ".table)
set multiplot layout 1,words(found)
titles = "parameters gradients moments activations temporaries"
colours = colour_parameters." ".colour_gradients." ".colour_state." " \
	.colour_activations." ".colour_temporary
do for [p in found] {
	set title p
	set ylabel p eq word(found, 1) ? "peak of a rank (MiB)" : ""
	plot for [k=1:5] stacks(p) using (column(word(held, k))): \
		xtic(stringcolumn("strategy")) lc rgb word(colours, k) \
		title word(titles, k), \
		stacks(p) using ($0):"derived" with points pt 7 ps 0.5 lc rgb "black" \
		title "predicted"
	unset key
}
unset multiplot
