# roofline.gp: rate against arithmetic intensity, from the measured peaks, and
# what our kernels reach (2.7B, bf16)
height = 84
load "src/plots/style.gp"
load "src/plots/rows.gp"
measured(name) = column("value")*only("quantity", name)
stats table using (measured("copy")) nooutput
copy = STATS_max/1000                            # TB/s
stats table using (measured("bf16")) nooutput
bf16 = STATS_max
stats table using (measured("tf32")) nooutput
tf32 = STATS_max
stats table using (measured("fp32")) nooutput
fp32 = STATS_max
roof(x, peak) = x*copy < peak ? x*copy : peak
flat(x, peak) = x*copy < peak ? NaN : peak
N = 2048.0; C = 2560.0; F = 10240.0; D = 80.0; T = 512.0; H = 32; V = 10000
linear = N*C*2*F/(N*C + C*2*F + N*2*F)
scores = 2*T*T*D/(2*(2*T*D + T*T))
# FLOPs of a fused kernel by its equation; softmax does half of the scores
names = "'rmsnorm forward' 'adamw' 'rope' 'swiglu forward' \
'softmax forward' 'cross-entropy'"
titles = "RMSNorm AdamW RoPE SwiGLU softmax loss"
FLOPs = sprintf("%g %g %g %g %g %g", 5*N*C, 14*2**26, 6*N*C, 5*N*F, 3*N*T*H, \
	5*N*V)
backward = "'rmsnorm backward' 'swiglu backward' 'softmax backward'"
backward_FLOPs = sprintf("%g %g %g", 14*N*C, 12*N*F, 2.5*N*T*H)
# bytes and us of one kernel; TFLOP/s of FlashAttention and of linear layers
large = "c(\"size\") == \"2.7B\" && c(\"precision\") == \"bf16\" "
kernel(name, value) = real(system(by_name.large.sprintf("&& \
	c(\"op\") == \"%s\" && c(\"path\") == \"fused\" { print c(\"%s\") }' %s", \
	name, value, table2)))
pass(FLOPs, variant, ms) = real(system(by_name.sprintf("c(\"heads\") == 16 && \
	c(\"n\") == 16384 && c(\"d\") == 128 && c(\"variant\") == \"%s\" { \
	print %d*16384^2*128*16/c(\"%s\")/1e9 }' %s", variant, FLOPs, ms, table3)))
flash(variant) = pass(2, variant, "fwd_ms")
flash_backward = pass(5, "warp_specialized", "bwd_ms")
all_linear = real(system(by_name.large."{ \
	print c(\"linear_GFLOP\")/c(\"linear_ms\") }' ".table4))
set logscale xy
set xrange [0.08:20000]
set yrange [0.3:1500]
set samples 400
set xlabel "arithmetic intensity (FLOP/byte)"
set ylabel "TFLOP/s"
set key off
set grid xtics lc rgb "#dddddd" lw 0.4 dt solid
set label sprintf("bf16 %.0f", bf16) at 0.1, bf16*1.22 left
set label sprintf("tf32 %.0f", tf32) at 1400, tf32*0.81 right
set label sprintf("fp32 %.0f", fp32) at 18000, fp32*0.81 right
set label sprintf("copy %.2f TB/s", copy) at 5, 5*copy*1.5 rotate by 45
set arrow from 0.08, bf16 to bf16/copy, bf16 nohead lt 9
array reached[6]
array intensity[6]
do for [i=1:6] {
	intensity[i] = real(word(FLOPs, i))/kernel(word(names, i), "bytes")
	reached[i] = real(word(FLOPs, i))/kernel(word(names, i), "us")/1e6
	if (word("1 0 1 0 1 0", i) + 0) {
		set label word(titles, i) at intensity[i]*1.15, reached[i]*0.84 left
	} else {
		set label word(titles, i) at intensity[i]*0.87, reached[i]*1.2 right
	}
}
array back_reached[3]
array back_intensity[3]
do for [i=1:3] {
	back_intensity[i] = real(word(backward_FLOPs, i)) \
		/kernel(word(backward, i), "bytes")
	back_reached[i] = real(word(backward_FLOPs, i)) \
		/kernel(word(backward, i), "us")/1e6
}
set label "v4" at 6400, flash_backward left font ",7.4"
set label "scores" at scores*1.2, roof(scores, bf16)*0.75 left
set label "FlashAttention, T = 512" at T/4*0.85, roof(T/4, bf16)*1.1 right
set label "FlashAttention, T = 16384" at 18000, bf16*1.3 right
set label "linear layers" at linear*1.1, all_linear*0.72 right
versions = "mma_sync wgmma warp_specialized"
do for [v=1:3] {
	set label sprintf("v%d", v + 1) at 3300, flash(word(versions, v)) \
		right font ",7.4"
}
plot roof(x, bf16) with lines lt 1, flat(x, tf32) with lines lt 3, \
	flat(x, fp32) with lines lt 2, \
	"+" using (scores):(roof(scores, bf16)) every ::0::0 with points pt 6 \
	ps 0.7 lc rgb "black", \
	"+" using (T/4):(roof(T/4, bf16)) every ::0::0 with points pt 6 ps 0.7 \
	lc rgb "black", \
	"+" using (linear):(all_linear) every ::0::0 with points pt 7 ps 0.7 \
	lc rgb colour_matmul, \
	for [v in versions] "+" using (4096):(flash(v)) every ::0::0 \
	with points pt 7 ps 0.7 lc rgb colour_forward, \
	for [i=1:6] "+" using (intensity[i]):(reached[i]) every ::0::0 \
	with points pt 7 ps 0.7 lc rgb (word(names, i) eq "adamw" \
	? colour_optimizer : colour_forward), \
	for [i=1:3] "+" using (back_intensity[i]):(back_reached[i]) \
	every ::0::0 with points pt 4 ps 0.8 lc rgb colour_backward, \
	"+" using (5120):(flash_backward) every ::0::0 with points pt 4 ps 0.8 \
	lc rgb colour_backward
