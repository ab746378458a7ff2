# attention_beside.gp: time of cuDNN over ours on long shapes, bf16, one run
height = 62
load "src/plots/style.gp"
load "src/plots/rows.gp"
# a line for each shape: cuDNN's time over ours
shapes = rows("shape\tfwd\treplay\tatomic\tdet", " \
	{ n = c(\"n\"); v = c(\"variant\"); b = c(\"bwd_ms\") } \
	c(\"dtype\") != \"bf16\" || n <= 1024 { next } \
	{ h = c(\"heads\"); h = h \" head\" (h > 1 ? \"s\" : \"\") } \
	{ s = h \", \" n/1024 \" k\\\\nD = \" c(\"d\") } \
	v == \"warp_specialized\" { f[s] = c(\"fwd_ms\"); det[s] = b } \
	v == \"warp_specialized\" { r[s] = c(\"fwd_replay_ms\") } \
	v == \"warp_specialized-atomic\" { any[s] = b } \
	v == \"pytorch-cudnn\" { x = c(\"fwd_ms\") } \
	v == \"pytorch-cudnn\" { print s, x/f[s], x/r[s], b/any[s], b/det[s] }") \
	.table
set ylabel "time of cuDNN / ours"
set yrange [0:2.1]
set xrange [-0.5:*]
set xtics scale 0 font ",7.4"
w = 0.26
plot shapes using ($0 - w):"fwd":(w) with boxes \
	lc rgb colour_forward title "forward", \
	"" using ($0):"atomic":(w):xtic(stringcolumn("shape")) with boxes \
	lc rgb colour_backward fs solid 0.5 title "backward, atomic", \
	"" using ($0 + w):"det":(w) with boxes lc rgb colour_backward \
	title "backward, deterministic", \
	"" using ($0 - w):"fwd":(0):(column("replay") - column("fwd")) \
	with vectors nohead lc rgb "black" lw 1.2 notitle, \
	1 lt 9 notitle
