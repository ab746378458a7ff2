# accumulation.gp: running sums of 0.01, and their errors, in several formats
height = 105
load 'src/plots/style.gp'
set multiplot layout 2,1
set xrange [0:1000]
set bmargin 0.5
set format x ''
set ylabel 'running sum'
plot table using 'step':'fp32' w l lt 1 t 'fp32 + fp32', \
     '' using 'step':'fp16' w l lt 2 t 'fp16 + fp16', \
     NaN w l lt 3 t 'fp32 + fp16', \
     '' using 'step':'bf16' w l lt 4 t 'bf16 + bf16', \
     NaN w l lt 5 t 'fp32 + bf16'
set bmargin 3
set format x '%g'
set xlabel 'additions'
set ylabel 'distance from the exact sum'
set logscale y
set format y '10^{%T}'
set yrange [1e-7:20]
unset key
error(name) = abs(column(name) - column('exact'))
plot table using 'step':(error('fp32')) w l lt 1, \
     '' using 'step':(error('fp16')) w l lt 2, \
     '' using 'step':(error('fp32_fp16')) w l lt 3, \
     '' using 'step':(error('bf16')) w l lt 4, \
     '' using 'step':(error('fp32_bf16')) w l lt 5
unset multiplot
