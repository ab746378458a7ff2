# cost_public.gp: errors for published runs, but of the rows that were fitted
height = 70
load "src/plots/style.gp"
sources = "'Llama 3' 'MegaScale' 'Megatron-LM, 2021' 'Megatron-LM, 2024' " \
	."'TorchTitan, compiled' 'TorchTitan, eager' 'TorchTitan, A100'"
marks = "7 5 9 13 2 1 3"
off(source) = column("error")*100*only("source", source)*only("role", "checked")
set multiplot
do for [i=1:words(sources)] {
	set label 10 + i word(sources, i) at screen 0.02 + 0.24*((i - 1) % 4), \
		(i < 5 ? 0.97 : 0.92) point pt int(word(marks, i)) ps 0.5 lc i \
		offset 1, 0
}
unset key
set logscale x
set xrange [5:30000]
set yrange [-35:35]
set xlabel "GPUs"
set xtics ("8" 8, "64" 64, "512" 512, "4 k" 4096, "16 k" 16384)
set tmargin at screen 0.86
set bmargin at screen 0.17
set lmargin at screen 0.10
set rmargin at screen 0.98
set ylabel "error (%)"
plot 0 with lines lt 9 lw 1 notitle, 15 with lines lt 9 notitle, \
	-15 with lines lt 9 notitle, \
	for [i=1:words(sources)] table \
	using "devices":(off(word(sources, i))) with points \
	pt int(word(marks, i)) ps 0.6 lc i title word(sources, i)
unset multiplot
