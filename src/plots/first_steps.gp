# first_steps.gp: time and page faults of the first steps of a process
height = 55
load "src/plots/style.gp"
set multiplot layout 1,2
set xlabel "step"
set ylabel "ms"
set yrange [0:*]
plot table using "step":"step_ms" with linespoints lt 1 title "step", \
	"" using "step":"fwd_ms" with linespoints lt 2 title "forward", \
	"" using "step":"bwd_ms" with linespoints lt 3 title "backward"
set ylabel "page faults"
plot table using "step":"faults" with linespoints lt 4 notitle
unset multiplot
