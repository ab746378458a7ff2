# first_steps.gp: the time of the first steps of a process
height = 55
load "src/plots/style.gp"
set xlabel "step"
set ylabel "ms"
set logscale y
cold(dummy) = only("start", "cold")
plot table using (column("step")*cold(0)):"step_ms" with linespoints lt 1 \
	title "step", \
	"" using (column("step")*cold(0)):"fwd_ms" with linespoints lt 2 \
	title "forward", \
	"" using (column("step")*cold(0)):"bwd_ms" with linespoints lt 3 \
	title "backward", \
	"" using (column("step")*only("start", "kernels first")):"step_ms" \
	with linespoints lt 4 title "step, all kernels loaded"
