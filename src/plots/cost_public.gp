# cost_public.gp: errors for published runs, without the rows that were fitted
height = 74
load "src/plots/style.gp"
sources = "'Llama 3' 'MegaScale' 'Megatron-LM, 2024' 'Megatron-LM, 2021' " \
	."'TorchTitan, A100' 'TorchTitan, eager' 'TorchTitan, compiled'"
marks = "7 5 13 9 3 1 2"
colours = "1 2 4 3 5 6 6"
# of a time the error is turned: below zero the model is slower
turned(x) = strcol("unit") eq "s" ? 1/(1 + x) - 1 : x
off(source) = turned(column("error"))*100*only("source", source) \
	*only("role", "checked")
set multiplot
do for [i=1:words(sources)] {
	set label 10 + i word(sources, i) at screen 0.12 + 0.3*((i - 1)/3), \
		screen 0.97 - 0.045*((i - 1) % 3) point pt int(word(marks, i)) \
		ps 0.7 lc int(word(colours, i)) offset 1, 0
}
unset key
set logscale x
set xrange [50:30000]
set yrange [-35:20]
set xlabel "GPUs"
set xtics ("64" 64, "128" 128, "256" 256, "512" 512, "1 k" 1024, \
	"2 k" 2048, "4 k" 4096, "8 k" 8192, "16 k" 16384)
set tmargin at screen 0.83
set bmargin at screen 0.16
set lmargin at screen 0.10
set rmargin at screen 0.98
set ylabel "speed over published, less one (%)"
plot 0 with lines lt 9 lw 1 notitle, 15 with lines lt 9 notitle, \
	-15 with lines lt 9 notitle, \
	for [i=1:words(sources)] table \
	using "devices":(off(word(sources, i))) with points \
	pt int(word(marks, i)) ps 0.75 lc int(word(colours, i))
unset multiplot
