# ddp_kinds.gp: steps with three ways to sum gradients, relative to none
height = 62
load "src/plots/style.gp"
load "src/plots/sizes.gp"
x(k, p) = (index_of(stringcolumn("size")) + p)*only("kind", k)
longer(dummy) = column("step_ms")/column("single_ms")
bf16(dummy) = stringcolumn("precision") eq "bf16" ? 0.1 : -0.1
set ylabel "step / step of one rank"
set yrange [0:*]
set offsets 0, 0, graph 0.06, 0
plot 1 with lines lt 9 notitle, \
	for [k=1:3] table using (x(word("naive flat overlap", k), bf16(0) \
	+ (k - 2)*0.03)):(longer(0)) with points lt k ps 0.6 \
	title word("naive flat overlap", k), \
	table using (x("flat", bf16(0))):(longer(0)*only("precision", "fp32")):\
	(stringcolumn("precision")) with labels right offset -1.5, 0 notitle
