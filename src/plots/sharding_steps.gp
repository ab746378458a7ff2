# sharding_steps.gp: time from step to step by strategy and size, over that of a
# rank alone
height = 62
load "src/plots/style.gp"
unset datafile columnheaders
ratios(p) = sprintf("<awk -F'\\t' '/^#/ { next } !head++ { for (i = 1; i <= NF; \
	i++) at[$i] = i; next } $at[\"precision\"] == \"%s\" && $at[\"status\"] \
	== \"ok\" { s = $at[\"size\"]; if (!(s in seen)) { seen[s] = 1; o[++n] = s } \
	t[s, $at[\"strategy\"]] = $at[\"period_ms\"] } END { for (i = 1; i <= n; i++) \
	{ a = t[o[i], \"single\"]; if (a > 0) print o[i] \"\\t\" t[o[i], \"ddp\"]/a \
	\"\\t\" t[o[i], \"sharded\"]/a \"\\t\" t[o[i], \"zero1\"]/a } }' %s", \
	p, table)
set style data histogram
set style histogram clustered gap 1.5
set yrange [0:*]
set offsets 0, 0, graph 0.06, 0
set multiplot layout 1,2
do for [p in "fp32 bf16"] {
	set title p
	set ylabel p eq "fp32" ? "step / step of one rank" : ""
	plot for [c=2:4] ratios(p) using c:xtic(1) lt c - 1 \
		title word("ddp sharded zero1", c - 1), 1 with lines lt 9 notitle
}
unset multiplot
