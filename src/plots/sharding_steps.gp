# sharding_steps.gp: time from step to step by strategy and size, over that of a
# rank alone
height = 62
load "src/plots/style.gp"
unset datafile columnheaders
# size and precision; ddp, sharded and zero1 over single
ratios = sprintf("<awk -F'\t' '/^#/ { next } \
	!head++ { for (i = 1; i <= NF; i++) at[$i] = i; next } $NF == \"ok\" { \
	s = $at[\"size\"] \" \" $at[\"precision\"]; if (!(s in seen)) o[++n] = s; \
	seen[s] = 1; k = $at[\"strategy\"]; if ($at[\"sums\"] == \"optimizer\") \
	k = \"zero1+\"; t[s, k] = $at[\"period_ms\"] } \
	END { for (i = 1; i <= n; i++) { a = t[o[i], \"single\"]; if (a > 0) \
	print o[i] \"\t\" t[o[i], \"ddp\"]/a \"\t\" t[o[i], \"sharded\"]/a \"\t\" \
	t[o[i], \"zero1\"]/a \"\t\" t[o[i], \"zero1+\"]/a } }' %s", table)
set style data histogram
set style histogram clustered gap 1.5
set yrange [0:*]
set offsets 0, 0, graph 0.06, 0
set xtics rotate by 30 right scale 0
set ylabel "step / step of one rank"
titles = "ddp sharded zero1 'zero1, sums in AdamW'"
colours = colour_ddp." #c4c8ce ".colour_zero." #8fc0b3"
plot for [c=2:5] ratios using c:xtic(1) lc rgb word(colours, c - 1) \
	title word(titles, c - 1), 1 with lines lt 9 notitle
