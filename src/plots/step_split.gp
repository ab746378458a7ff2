# step_split.gp: fractions of a step by class of operation, and the bound of each
height = 66
load "src/plots/style.gp"
load "src/plots/sizes.gp"
load "src/plots/rows.gp"
rate(name) = column("value")*only("quantity", name)
stats table2 using (rate("copy")) nooutput
copy = STATS_max
stats table2 using (rate("bf16")) nooutput
low = STATS_max
stats table2 using (rate("fp16")) nooutput
split = STATS_max/3
stats table2 using (rate("fp32")) nooutput
total(dummy) = column("linear_ms") + column("attention_ms") \
	+ column("elementwise_ms") + column("optimizer_ms")
shape(name, size) = real(system(by_name.sprintf("c(\"size\") == \"%s\" && \
	!m++ { print c(\"%s\") }' %s", size, name, table3)))
array C[5]
array F[5]
array L[5]
do for [i=1:words(sizes)] {
	C[i] = shape("d_model", word(sizes, i))
	F[i] = shape("d_ff", word(sizes, i))
	L[i] = shape("layers", word(sizes, i))
}
x(p) = index_of(stringcolumn("size"))*only("precision", p)
first(dummy) = column("linear_ms")/total(0)
second(dummy) = first(0) + column("attention_ms")/total(0)
third(dummy) = second(0) + column("elementwise_ms")/total(0)
set multiplot layout 1,2
set ylabel "fraction of the step"
set yrange [0:1]
set xtics rotate by 30 right
set boxwidth 0.8 absolute
set key maxrows 2 samplen 1.2 width 0
do for [p in "bf16 fp32"] {
	flops = p eq "bf16" ? low : STATS_max
	size = p eq "bf16" ? 30 : 28
	matmul = p eq "bf16" ? low : split
	norm = p eq "bf16" ? 60 : 72
	swiglu = p eq "bf16" ? 18 : 36
	width = p eq "bf16" ? 2 : 4
	by_flops(dummy) = column("attention_GFLOP")*7/12/matmul
	by_bytes(dummy) = column("attention_GFLOP")*16e3/12/column("context") \
		*width/copy
	attention(dummy) = by_flops(0) > by_bytes(0) ? by_flops(0) : by_bytes(0)
	i(dummy) = index_of(stringcolumn("size"))
	elementwise(dummy) = 4*column("context")*L[i(0)]*(norm*C[i(0)] \
		+ swiglu*F[i(0)])/copy*1e-6
	set title p
	plot table using (x(p)):(1) with boxes lc rgb colour_optimizer \
		title "optimizer", \
		"" using (x(p)):(third(0)) with boxes lc rgb colour_activations \
		title "elementwise", \
		"" using (x(p)):(second(0)) with boxes lc rgb colour_attention \
		title "attention", \
		"" using (x(p)):(first(0)) with boxes lc rgb colour_matmul \
		title "linear", \
		"" using (x(p) - 0.4):(column("linear_GFLOP")/flops/total(0)): \
		(0.8):(0) with vectors nohead lt 1 lc rgb "white" lw 1.5 notitle, \
		"" using (x(p) - 0.4):(first(0) + attention(0)/total(0)):(0.8):(0) \
		with vectors nohead lt 1 lc rgb "black" lw 1 notitle, \
		"" using (x(p) - 0.4):(second(0) + elementwise(0)/total(0)):(0.8):(0) \
		with vectors nohead lt 1 lc rgb "black" lw 1 notitle, \
		"" using (x(p) - 0.4):(third(0) + column("parameters")*size/copy*1e-6 \
		/total(0)):(0.8):(0) with vectors nohead lt 1 lc rgb "white" lw 1.5 \
		notitle
}
unset multiplot
