# sharding_memory.gp: memory of a rank by category and strategy, and predictions
height = 74
load "src/plots/style.gp"
unset datafile columnheaders
# strategy, five categories, prediction; of the first size
stacks(p) = sprintf("<awk -F'\t' '/^#/ { next } \
	!head++ { for (i = 1; i <= NF; i++) at[$i] = i; next } \
	!size { size = $at[\"size\"] } \
	$at[\"size\"] == size && $at[\"precision\"] == \"%s\" && $NF == \"ok\" { \
	s = $at[\"strategy\"]; if (s == \"fsdp\") s = s \" \" $at[\"prefetch\"]; \
	if ($at[\"sums\"] == \"optimizer\") s = s \", AdamW\"; \
	n = split(\"parameter gradient optimizer activation temporary derived\", w, \
	\" \"); for (i = 1; i <= n; i++) s = s \"\t\" $at[w[i] \"_MiB\"]; \
	print s }' %s", \
	p, table)
set style data histogram
set style histogram rowstacked
set boxwidth 0.7 relative
set yrange [0:*]
set offsets 0, 0, graph 0.04, 0
set xtics rotate by 40 right scale 0 font ",7"
set key at screen 0.12, screen 0.99 left top maxrows 2 width 0
set tmargin at screen 0.78
found = system(sprintf("awk -F'\t' '/^#/ { next } \
	!head++ { for (i = 1; i <= NF; i++) if ($i == \"precision\") c = i; next } \
	!seen[$c]++ { printf \"%%s \", $c }' %s", table))
set multiplot layout 1,words(found)
titles = "parameters gradients moments activations temporaries"
colours = colour_parameters." ".colour_gradients." ".colour_state." " \
	.colour_activations." ".colour_temporary
do for [p in found] {
	set title p
	set ylabel p eq word(found, 1) ? "peak of a rank (MiB)" : ""
	plot for [c=2:6] stacks(p) using c:xtic(1) lc rgb word(colours, c - 1) \
		title word(titles, c - 1), \
		stacks(p) using 0:7 with points pt 7 ps 0.5 lc rgb "black" \
		title "predicted"
	unset key
}
unset multiplot
