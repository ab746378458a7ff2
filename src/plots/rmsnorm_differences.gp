# rmsnorm_differences.gp: errors of finite differences against the step
height = 55
load 'src/plots/style.gp'
set logscale xy
set format x '10^{%T}'
set format y '10^{%T}'
set xrange [5e-12:20]
set yrange [1e-17:2]
set xlabel 'step h'
set ylabel 'relative error'
set key maxcols 2
u = 2.0**-53
e(x, H) = x**2 / (2 * H) + u * sqrt(H) / (2 * x)
step_of(width) = column('step') * is('width', width)
plot e(x, 7) lt 9 lw 1.5 notitle, e(x, 768) lt 9 lw 1.5 notitle, \
     u / (3 * x) lt 9 lw 1.5 title 'predicted', \
     table using (step_of(7)):'dx_error' w p lt 1 t 'x, width 7', \
     '' using (step_of(768)):'dx_error' w p lt 2 t 'x, width 768', \
     '' using (step_of(768)):'dg_error' w p lt 3 t 'g, width 768'
