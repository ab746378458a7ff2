# formats.gp: the largest relative error of one rounding, by magnitude
height = 58
load 'src/plots/style.gp'
names = "fp32 bf16 fp16"
array E[3]
array M[3]
do for [i=1:3] {
	stats table using (column("exponent_bits")*only("format", word(names, i))) \
		nooutput
	E[i] = STATS_max
	stats table using (column("fraction_bits")*only("format", word(names, i))) \
		nooutput
	M[i] = STATS_max
}
k(x) = floor(log(x)/log(2) + 1e-9)
bias(i) = 2**(E[i] - 1) - 1
largest(i) = 2.0**bias(i)*(2 - 2.0**-M[i])
smallest(i) = 2.0**(1 - bias(i) - M[i])
most(a, b) = a > b ? a : b
half(i, x) = 2.0**(most(k(x), 1 - bias(i)) - M[i] - 1)/x
error(i, x) = x > largest(i) || x < smallest(i) ? NaN : half(i, x)

set border 3
set grid ytics
unset key
set logscale xy 2
set xrange [2.0**-28:2.0**20]
set yrange [2.0**-26:1]
set xtics 16 scale 0.5
set format x "2^{%L}"
set format y "2^{%L}"
set ytics 16
set xlabel "magnitude of the number"
set ylabel "relative error of one rounding"
set samples 2000
set label "fp32" at 2.0**-24, 2.0**-22.6
set label "fp16 (and, where it is normal, tf32)" at 2.0**-13, 2.0**-13.3
set label "bf16" at 2.0**-24, 2.0**-6.4
plot error(1, x) w l lt 1 dt solid, error(2, x) w l lt 4, \
	error(3, x) w l lt 2 dt solid
