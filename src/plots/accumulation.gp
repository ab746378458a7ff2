# accumulation.gp: running sums of 0.01, and their signed errors
height = 112
load "src/plots/style.gp"
error(name) = 1000*(column(name) - column("exact"))
set xrange [0:1160]
set xtics 200
unset key
set multiplot
set lmargin at screen 0.11
set rmargin at screen 0.98
set tmargin at screen 0.98
set bmargin at screen 0.7
set format x ""
set ylabel "running sum"
plot table using "step":"fp32" with lines lt 1, \
	"" using "step":"fp16" with lines lt 2, \
	"" using "step":"bf16" with lines lt 4, \
	"+" using (1000):(10.35):("fp16 + fp16, others") every ::0::0 \
	with labels left offset -9, 0.7 font ",7.4", \
	table using (column("step") == 1000 ? 1000 : NaN):"bf16":("bf16 + bf16") \
	with labels left offset -3, 0.8 font ",7.4"
set tmargin at screen 0.66
set bmargin at screen 0.38
set ylabel "error"
set ytics 0.5
at_end(dummy) = column("step") == 1000 ? 1000 : NaN
set label 1 "bf16 + bf16 leaves the scale" at 500, -0.5 font ",7.4" \
	textcolor lt 4
plot [][-0.8:0.8] table using "step":(error("fp32")/1000) with lines lt 1, \
	"" using "step":(error("fp16")/1000) with lines lt 2, \
	"" using "step":(error("bf16")/1000) with lines lt 4, \
	"" using (at_end(0)):(error("fp32")/1000):("others") \
	with labels left offset 0.5, 0.3 font ",7.4", \
	"" using (at_end(0)):(error("fp16")/1000):("fp16 + fp16") \
	with labels left offset 0.5, -0.4 font ",7.4"
unset label 1
set tmargin at screen 0.34
set bmargin at screen 0.09
set format x "%g"
set xlabel "additions"
set ylabel "error (thousandths)"
set ytics 5
plot [][-1:11] table using "step":(error("fp32")) with lines lt 1, \
	"" using "step":(error("fp32_fp16")) with lines lt 3, \
	"" using "step":(error("fp32_bf16")) with lines lt 5, \
	"" using (at_end(0)):(error("fp32")):("fp32 + fp32") \
	with labels left offset 0.5, 0 font ",7.4", \
	"" using (at_end(0)):(error("fp32_fp16")):("fp32 + fp16") \
	with labels left offset 0.5, 0 font ",7.4", \
	"" using (at_end(0)):(error("fp32_bf16")):("fp32 + bf16") \
	with labels left offset 0.5, 0 font ",7.4"
unset multiplot
