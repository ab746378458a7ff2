# flame_graph.gp: ranges of a forward pass in time over three blocks, and ranges
# and kernels of the whole pass added up, one upon the other
height = 116
load "src/plots/style.gp"
set datafile missing NaN
level(dummy) = column("depth")
hex(c) = int("0x".c[2:7])
class_of(name) = name eq "forward" ? colour_forward \
	: strstrt(name, "gemm") || name eq "linear" || name eq "scores" \
	|| name eq "values" ? colour_matmul \
	: strstrt(name, "softmax") ? colour_softmax \
	: strstrt(name, "norm") ? colour_norm \
	: name eq "feed-forward" || strstrt(name, "swiglu") \
	|| strstrt(name, "gate") ? colour_ffn \
	: name eq "attention" || name eq "flash" || strstrt(name, "rope") \
	|| strstrt(name, "split_") ? colour_attention \
	: name eq "step" || name eq "layer" ? "#d8d8d8" : colour_rest
shade(name) = hex(class_of(name))
ink(name) = class_of(name) eq colour_matmul || class_of(name) eq colour_norm \
	? 0xffffff : 0
unset grid
unset ytics
set border 1
set key off
set style fill solid 0.85 border lc rgb "white"
set multiplot layout 3,1 margins 0.03, 0.97, 0.09, 0.955 spacing 0, 0.135
set xlabel "ms" offset 0, 0.5
set title offset 0, -0.5
set yrange [-0.5:4.6]
# in time: from the start of one block to the end of the second after it
load "src/plots/rows.gp"
layer = "c(\"fusion\") == \"eager\" && c(\"range\") == \"layer\" "
block(n, what) = real(system(by_name.layer.sprintf("&& ++n == %d { \
	print c(\"%s\") }' %s", n, what, table2)))
count = int(system(by_name.layer."{ n++ } END { print n }' ".table2))
first = count > 22 ? 20 : 1
blocks = count > 22 ? 3 : count > 2 ? 2 : 1
begin = block(first, "start_ms")
end = block(first + blocks - 1, "end_ms")
inside(x) = x < begin ? begin : x > end ? end : x
low(dummy) = inside(column("start_ms"))*only("fusion", "eager")
high(dummy) = inside(column("end_ms"))*only("fusion", "eager")
set xrange [begin:end]
shown(dummy) = high(0) - low(0) > 0.062*(end - begin) ? \
	stringcolumn("range") : ""
set title sprintf("eager, in time: %d blocks of %d", blocks, count)
plot table2 using (low(0)/(high(0) > low(0))):(level(0)):(low(0)):(high(0)): \
	(level(0) - 0.48):(level(0) + 0.48):(shade(stringcolumn("range"))) \
	with boxxyerror lw 0.3 lc rgb variable, \
	"" using (low(0) + (end - begin)*0.003):(level(0)):(shown(0)): \
	(ink(stringcolumn("range"))) with labels left font ",7.4" \
	textcolor rgb variable
short(box) = strstrt(box, "gemm") ? "GEMM" : box
left(f) = column("start_ms")*only("fusion", f)
right(f) = left(f) + column("width_ms")
do for [f in "eager fused"] {
	set autoscale
	stats table using (column("width_ms")*only("fusion", f)) nooutput
	total = STATS_max
	set xrange [0:total]
	set yrange [-0.5:5.6]
	most(dummy) = int(column("width_ms")/total*88)
	wide(box) = strlen(box) + (box eq "GEMM" ? 2 : 0)
	text(dummy) = wide(short(stringcolumn("box"))) <= most(0) \
		|| most(0) > 15 ? short(stringcolumn("box"))[1:most(0)] : ""
	set title f.", added up"
	plot table using (left(f)):(level(0)):(left(f)):(right(f)): \
		(level(0) - 0.48):(level(0) + 0.48):(shade(stringcolumn("box"))) \
		with boxxyerror lw 0.3 lc rgb variable, \
		"" using (left(f) + total*0.003):(level(0)):(text(0)): \
		(ink(stringcolumn("box"))) with labels left \
		noenhanced font ",7.4" textcolor rgb variable
}
unset multiplot
