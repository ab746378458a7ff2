# memory_peaks.gp: peaks by context, precision and path
height = 62
load "src/plots/style.gp"
peaks(m, f, p) = sprintf("<awk -F'\t' 'BEGIN { print \"context\tpeak\" } \
	/^#/ { next } !head++ { for (i = 1; i <= NF; i++) at[$i] = i; next } \
	$at[\"mode\"] == \"%s\" && $at[\"fusion\"] == \"%s\" && \
	$at[\"precision\"] == \"%s\" && $at[\"step\"] == 1 { T = $at[\"context\"]; \
	if (!(T in n)) { n[T] = ++k; o[k] = T } if ($at[\"peak_MiB\"] > m[T]) \
	m[T] = $at[\"peak_MiB\"] } END { for (i = 1; i <= k; i++) print o[i] \
	\"\t\" m[o[i]]/1024 }' %s", m, f, p, table)
set style data histogram
set style histogram clustered gap 1.5
set multiplot layout 1,2 margins 0.1, 0.98, 0.19, 0.86 spacing 0.11, 0
set yrange [0:*]
set xlabel "context"
set key at screen 0.1, 0.99 left top vertical maxrows 2
# the lighter of a colour is bf16
do for [m in "forward step"] {
	set ylabel (m eq "step" ? "step" : "forward alone").", peak (GiB)"
	plot peaks(m, "eager", "fp32") using "peak":xtic(1) lc rgb colour_eager \
		title "fp32, eager", peaks(m, "eager", "bf16") using "peak" \
		lc rgb "#c4c8ce" title "bf16, eager", \
		peaks(m, "fused", "fp32") using "peak" lc rgb colour_fused \
		title "fp32, fused", peaks(m, "fused", "bf16") using "peak":xtic(1) \
		lc rgb "#9db0cf" title "bf16, fused"
	unset key
}
unset multiplot
