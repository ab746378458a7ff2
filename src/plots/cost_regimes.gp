# cost_regimes.gp: the fastest way to divide a step, by devices and batch
height = 100
load "src/plots/style.gp"
models = "xl 8B 70B 405B"
ways = "'one device' DDP ZeRO-1 FSDP tensor pipeline"
strategies = "single ddp zero1 fsdp"
apart(i) = i <= 4 ? (column("stages") == 1 && column("tensor") == 1 \
	? only("strategy", word(strategies, i)) : NaN) \
	: i == 5 ? (column("stages") == 1 && column("tensor") > 1 ? 1 : NaN) \
	: column("stages") > 1 ? 1 : NaN
at(model, i) = column("tokens")*only("hardware", "H100")*only("model", model) \
	*apart(i)
set multiplot
set logscale xy 2
set xrange [0.5:2**17]
set yrange [2**17:2**27]
set xtics ("1" 1, "16" 16, "256" 256, "4 k" 4096, "64 k" 65536)
set ytics ("256 Ki" 2**18, "1 Mi" 2**20, "4 Mi" 2**22, "16 Mi" 2**24, \
	"64 Mi" 2**26)
unset grid
do for [k=1:4] {
	left = k % 2 == 1
	set lmargin at screen (left ? 0.12 : 0.58)
	set rmargin at screen (left ? 0.52 : 0.98)
	set tmargin at screen (k < 3 ? 0.88 : 0.45)
	set bmargin at screen (k < 3 ? 0.55 : 0.12)
	set xlabel (k < 3 ? "" : "devices")
	set ylabel (left ? "tokens in a step" : "")
	set title word(models, k) offset 0, -0.7
	if (k == 1) {
		set key at screen 0.5, 0.99 center top maxrows 1 samplen 1 width 0
	} else {
		unset key
	}
	plot for [i=1:6] table using "devices":(at(word(models, k), i)) \
		with points pt 5 ps 1 lc i title word(ways, i)
}
unset multiplot
