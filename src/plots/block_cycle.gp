# block_cycle.gp: ranges of a forward pass in time, and the period of its blocks
height = 128
load "src/plots/style.gp"
set datafile missing NaN
left(f) = column("start_ms")*only("fusion", f)
right(f) = column("end_ms")*only("fusion", f)
centre(f) = (left(f) + right(f))/2
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
# a line for each block: its number, and the time from the block before it
load "src/plots/rows.gp"
blocks(f) = rows("block\tstart\tperiod", sprintf("c(\"fusion\") == \"%s\" && \
	c(\"range\") == \"layer\" { x = c(\"start_ms\"); \
	print ++n, x, (n > 1 ? x - last : \"NaN\"); last = x }", f)).table
set macros
boxes = 'table using (left("eager")):(level(0)):(left("eager")): \
	(right("eager")):(level(0) - 0.48):(level(0) + 0.48): \
	(shade(stringcolumn("range"))) with boxxyerror'
stats blocks("eager") using "start" nooutput
n = STATS_records
first = n > 22 ? 20 : 1
last = first + 2 > n ? n : first + 2
stats blocks("eager") using (column("start")*is("block", first)) nooutput
from = STATS_min
stats blocks("eager") using (column("start")*is("block", last)) nooutput
to = STATS_max
stats table using (right("eager")) nooutput
all = STATS_max
set style fill solid 0.85 border lc rgb "white"
set key off
set multiplot layout 3,1
set border 1
unset grid
set ytics ("step" 0, "forward" 1, "layer" 2, "part" 3, "inside" 4) scale 0
set xlabel "ms"
set xrange [0:all]
set yrange [-0.5:4.6]
low(dummy) = level(0)/(level(0) < 4)
high(dummy) = level(0)/(level(0) > 3)
plot table using (left("eager")):(low(0)):(left("eager")):(right("eager")): \
	(low(0) - 0.48):(low(0) + 0.48):(shade(stringcolumn("range"))) \
	with boxxyerror lw 0.1 lc rgb variable, \
	table using (left("eager")):(high(0)):(left("eager")):(right("eager")): \
	(high(0) - 0.48):(high(0) + 0.48):(shade(stringcolumn("range"))) \
	with boxxyerror fs solid noborder lc rgb variable
set xrange [from:to]
# a box has its name if it is wide enough; of what lies inside, some layers are
named(dummy) = right("eager") - left("eager") > 0.06*(to - from) \
	&& centre("eager") > from && centre("eager") < to && level(0) > 1 \
	? stringcolumn("range") : ""
plot @boxes lw 0.6 lc rgb variable, \
	table using (centre("eager")):(level(0)):(named(0)): \
	(ink(stringcolumn("range"))) with labels font ",7.4" textcolor rgb variable
set border 3
set grid ytics
set ytics autofreq scale 0.5
set key on maxrows 1
set xlabel "block"
set ylabel "period (ms)"
set xrange [0:n + 1]
set yrange [0:*]
plot blocks("eager") using "block":"period" with points lt 4 \
	lc rgb colour_eager title "eager", \
	blocks("fused") using "block":"period" with points lt 1 \
	lc rgb colour_fused title "fused"
unset multiplot
