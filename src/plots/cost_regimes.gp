# cost_regimes.gp: the fastest way to divide a step, by devices and batch
height = 94
load "src/plots/style.gp"
models = "xl 8B 70B 405B"
ways = "'one device' DDP ZeRO-1 FSDP 'and tensor parallelism' 'pipeline faster'"
strategies = "single ddp zero1 fsdp"
# dark, middle, dark, light: neighbours differ in grey too
shades = "#1b3560 ".colour_ddp." ".colour_zero." ".colour_fsdp
of(model) = column("tokens")*only("hardware", "H100")*only("model", model)
plain(model, i) = of(model)*only("plain_strategy", word(strategies, i))
# a cross, dark on what is light
tensor(model, dark) = of(model)*(column("plain_tensor") > 1 \
	&& (stringcolumn("plain_strategy") eq "fsdp") == dark ? 1 : NaN)
lies_on_dark(dummy) = stringcolumn("plain_strategy") eq "single" \
	|| stringcolumn("plain_strategy") eq "zero1"
pipeline(model, dark) = of(model)*(column("stages") > 1 \
	&& lies_on_dark(0) == dark ? 1 : NaN)
set multiplot
set logscale xy 2
set xrange [0.5:2**17]
set yrange [2**17:2**27]
set xtics ("1" 1, "16" 16, "256" 256, "4 k" 4096, "64 k" 65536)
set ytics ("256 Ki" 2**18, "1 Mi" 2**20, "4 Mi" 2**22, "16 Mi" 2**24, \
	"64 Mi" 2**26)
unset grid
unset key
do for [i=1:6] {
	set label i word(ways, i) at screen 0.12 + 0.3*((i - 1) % 3), \
		(i < 4 ? 0.975 : 0.935) point pt (i < 5 ? 5 : i == 5 ? 1 : 6) \
		ps (i < 5 ? 1 : 0.6) lc rgb (i == 5 ? "white" : "black") offset 1, 0
}
do for [i=1:4] { set label i point pt 5 ps 1 lc rgb word(shades, i) }
set label 5 point pt 1 ps 0.6 lc rgb "black"
do for [k=1:4] {
	left = k % 2 == 1
	set lmargin at screen (left ? 0.13 : 0.62)
	set rmargin at screen (left ? 0.5 : 0.99)
	set tmargin at screen (k < 3 ? 0.86 : 0.44)
	set bmargin at screen (k < 3 ? 0.56 : 0.12)
	set xlabel (k < 3 ? "" : "devices")
	set ylabel (left ? "tokens in a step" : "") offset 0.3, 0
	set title word(models, k) offset 0, -0.7
	model = word(models, k)
	plot for [i=1:4] table using "devices":(plain(model, i)) \
		with points pt 5 ps 1.2 lc rgb word(shades, i), \
		table using "devices":(tensor(model, 0)) with points pt 1 ps 0.6 \
		lc rgb "white", \
		table using "devices":(tensor(model, 1)) with points pt 1 ps 0.6 \
		lc rgb "black", \
		table using "devices":(pipeline(model, 0)) with points pt 6 ps 0.6 \
		lc rgb "black", \
		table using "devices":(pipeline(model, 1)) with points pt 6 ps 0.6 \
		lc rgb "white"
	unset label
}
unset multiplot
