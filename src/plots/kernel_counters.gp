# kernel_counters.gp: how busy units are in each version of attention; without
# recorded counters a line that says so
load "src/plots/rows.gp"
counted = int(system(by_name."c(\"status\") == \"ok\" { n++ } \
	END { print n + 0 }' ".table))
height = counted > 0 ? 120 : 14
load "src/plots/style.gp"
versions = "simt mma_sync wgmma warp_specialized split_fp16"
units = "tensor_pct xu_pct fp32_pct smem_pct l2_pct dram_pct"
titles = "tensor SFU FP32 shared L2 HBM"
colours = "#1b3560 #d9793a #7a9bd1 #1f6b5c #b08ac6 #8c8c8c"
set key off
unset border
unset tics
unset grid
set xrange [0:100]
set yrange [0:1]
if (counted == 0) {
	set label "No counters are recorded yet." at 50, 0.5 center
	plot NaN notitle
	exit
}
# the first kernel of a version in the table takes the most of its time
share(op, variant, unit) = real(system(by_name.sprintf(" \
	c(\"op\") == \"attention %s\" && c(\"variant\") == \"%s\" { \
	x = c(\"%s\"); exit } END { print x + 0 }' %s", op, variant, unit, table)))
set border 3
set xtics 0, 20, 100 nomirror out scale 0.5
set grid xtics lc rgb "#dddddd" lw 0.4 dt solid
set xrange [0:118]
set yrange [5:-0.1]
set format y ""
set multiplot
do for [pass in "forward backward"] {
	set lmargin at screen (pass eq "forward" ? 0.22 : 0.63)
	set rmargin at screen (pass eq "forward" ? 0.6 : 1)
	set xlabel pass.", % of the unit's peak"
	unset label
	do for [v=1:5] {
		if (pass eq "forward") {
			set label "v".v." ".word(versions, v) at graph -0.02, \
				first v - 0.55 right noenhanced font ",8"
		}
		do for [u=1:6] {
			busy = share(pass, word(versions, v), word(units, u))
			y = v - 1 + (u - 1)*0.15
			set object 10*v + u rectangle from 0, y to busy, y + 0.13 \
				fillcolor rgb word(colours, u) fillstyle solid 0.9 noborder
			set label sprintf("%s %.0f", word(titles, u), busy) \
				at busy + 1, y + 0.065 left font ",7.5"
		}
	}
	plot NaN notitle
}
unset multiplot
