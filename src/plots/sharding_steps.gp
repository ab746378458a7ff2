# sharding_steps.gp: time from step to step by strategy and size, over that of a
# rank alone
height = 62
load "src/plots/style.gp"
load "src/plots/rows.gp"
# size and precision; ddp, sharded and zero1 over single
ratios = rows("model\tddp\tsharded\tzero1\tzero1+", "c(\"status\") == \"ok\" { \
	s = c(\"size\") \" \" c(\"precision\"); if (!(s in seen)) o[++n] = s; \
	seen[s] = 1; k = c(\"strategy\"); if (c(\"sums\") == \"optimizer\") \
	k = \"zero1+\"; t[s, k] = c(\"period_ms\") } \
	END { for (i = 1; i <= n; i++) { a = t[o[i], \"single\"]; if (a > 0) \
	print o[i], t[o[i], \"ddp\"]/a, t[o[i], \"sharded\"]/a, \
	t[o[i], \"zero1\"]/a, t[o[i], \"zero1+\"]/a } }").table
set style data histogram
set style histogram clustered gap 1.5
set yrange [0:*]
set offsets 0, 0, graph 0.06, 0
set xtics rotate by 30 right scale 0
set ylabel "step / step of one rank"
titles = "ddp sharded zero1 'zero1, sums in AdamW'"
colours = colour_ddp." #c4c8ce ".colour_zero." #8fc0b3"
strategies = "ddp sharded zero1 zero1+"
plot for [k=1:4] ratios using (column(word(strategies, k))): \
	xtic(stringcolumn("model")) lc rgb word(colours, k) \
	title word(titles, k), 1 with lines lt 9 notitle
