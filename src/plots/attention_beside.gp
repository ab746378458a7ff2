# attention_beside.gp: time of cuDNN over ours on long shapes, bf16, one run
height = 62
load "src/plots/style.gp"
# a line for each shape: cuDNN's time over ours
shapes = "<awk -F'\t' -v OFS='\t' ' \
	BEGIN { print \"shape\", \"fwd\", \"replay\", \"atomic\", \"det\" } \
	/^#/ { next } \
	!at[\"n\"] { for (i = 1; i <= NF; i++) at[$i] = i; next } \
	{ n = $at[\"n\"]; v = $at[\"variant\"]; b = $at[\"bwd_ms\"] } \
	$at[\"dtype\"] != \"bf16\" || n <= 1024 { next } \
	{ h = $at[\"heads\"]; h = h \" head\" (h > 1 ? \"s\" : \"\") } \
	{ s = h \", \" n/1024 \" k\\\\nD = \" $at[\"d\"] } \
	v == \"warp_specialized\" { f[s] = $at[\"fwd_ms\"]; det[s] = b } \
	v == \"warp_specialized\" { r[s] = $at[\"fwd_replay_ms\"] } \
	v == \"warp_specialized-atomic\" { any[s] = b } \
	v == \"pytorch-cudnn\" { c = $at[\"fwd_ms\"] } \
	v == \"pytorch-cudnn\" { print s, c/f[s], c/r[s], b/any[s], b/det[s] } \
	' " . table
set ylabel "time of cuDNN / ours"
set yrange [0:2.1]
set xrange [-0.5:*]
set xtics scale 0 font ",7"
w = 0.26
plot shapes using ($0 - w):"fwd":(w) with boxes \
	lc rgb colour_forward title "forward", \
	"" using 0:"atomic":(w):xtic(1) with boxes \
	lc rgb colour_backward fs solid 0.5 title "backward, atomic", \
	"" using ($0 + w):"det":(w) with boxes lc rgb colour_backward \
	title "backward, deterministic", \
	"" using ($0 - w):"fwd":(0):(column("replay") - column("fwd")) \
	with vectors nohead lc rgb "black" lw 1.2 notitle, \
	1 lt 9 notitle
