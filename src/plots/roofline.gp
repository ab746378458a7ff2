# roofline.gp: rate against arithmetic intensity, from the measured peaks
height = 78
load "src/plots/style.gp"
measured(q) = sprintf("<awk -F'\t' 'BEGIN { print \"value\" } \
	$1 == \"%s\" { print $2 }' %s", q, table)
stats measured("copy") using 1 nooutput
copy = STATS_max/1000                            # TB/s
stats measured("bf16") using 1 nooutput
bf16 = STATS_max
stats measured("tf32") using 1 nooutput
tf32 = STATS_max
stats measured("fp32") using 1 nooutput
fp32 = STATS_max
roof(x, peak) = x*copy < peak ? x*copy : peak
flat(x, peak) = x*copy < peak ? NaN : peak
N = 2048.0; C = 2560.0; F = 10240.0; D = 80.0; T = 512.0
linear = N*C*2*F/(N*C + C*2*F + N*2*F)
scores = 2*T*T*D/(2*(2*T*D + T*T))
set logscale xy
set xrange [0.2:20000]
set yrange [0.5:1500]
set samples 400
set xlabel "arithmetic intensity (FLOP/byte)"
set ylabel "TFLOP/s"
set key off
set grid xtics lc rgb "#dddddd" lw 0.4 dt solid
set label sprintf("bf16 %.0f", bf16) at 18000, bf16*1.22 right
set label sprintf("tf32 %.0f", tf32) at 18000, tf32*0.81 right
set label sprintf("fp32 %.0f", fp32) at 18000, fp32*0.81 right
set label sprintf("copy %.2f TB/s", copy) at 3.2, 3.2*copy*1.5 rotate by 42
array name[6] = ["AdamW", "SwiGLU", "scores", "FlashAttention, 512", \
	"FlashAttention, 16384", "W_1 and W_3"]
array intensity[6] = [14/30.0, 5/6.0, scores, T/4, 16384/4, linear]
array dx[6] = [1.25, 1.25, 1.25, 1.25, 0.17, 0.4]
array dy[6] = [0.8, 0.8, 0.75, 0.75, 0.78, 1.32]
do for [i=1:6] {
	set label name[i] at intensity[i]*dx[i], roof(intensity[i], bf16)*dy[i] \
		left
}
plot roof(x, bf16) with lines lt 1, flat(x, tf32) with lines lt 3, \
	flat(x, fp32) with lines lt 2, \
	for [i=1:6] "+" using (intensity[i]):(roof(intensity[i], bf16)) every ::0::0 \
	with points pt 7 ps 0.6 lc rgb "#7a1f2b"
