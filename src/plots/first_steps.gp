# first_steps.gp: the first step of a process by phase and by what the host did,
# and a later step
height = 52
load "src/plots/style.gp"
load "src/plots/rows.gp"
taken(step, name) = real(system(by_name.sprintf("c(\"start\") == \"cold\" && \
	c(\"step\") == %d { print c(\"%s\") }' %s", step, name, table)))
opened = taken(1, "open_ms")
whole = taken(1, "step_ms")
set yrange [0.3:3.7]
set ytics ("a later step" 1, "first step" 2, "host, in\nthe first step" 3) scale 0
set xrange [-opened*1.02:whole + 0.12*(whole + opened)]
set xlabel "ms from the beginning of the step"
unset grid
unset key
set arrow from 0, graph 0 to 0, graph 1 nohead lt 9
number = 0
rect(y) = sprintf("set object %d rect from %g, %g to %g, %g fs solid 0.85 \
noborder fc rgb '%s'", number, from, y - 0.36, to, y + 0.36, colour)
# inside of a segment, above a narrow one, or behind the last one
fits(dummy) = to - from > 0.0155*strlen(text)*(whole + opened)
name(y) = to - from < 0.05*(whole + opened) ? last ? sprintf("set label %d \
'%s' at %g, %g left offset 0.4, 0 front font ',7.4'", number, text, to, y) \
: "" : sprintf("set label %d \
'%s' at %g, %g center front font ',7.4' tc rgb '%s'", number, text, \
(from + to)/2, y + (fits(0) ? 0 : 0.5), fits(0) ? ink : "black")
bar = "number = number + 1; eval rect(y); eval name(y)"
from = -opened; to = 0; y = 2
colour = "#b9bec6"; text = "opening the device"; ink = "black"
last = 0
eval bar
do for [n=1:2] {
	to = 0
	y = 3 - n
	do for [p in "fwd bwd opt"] {
		from = to
		to = from + taken(n == 1 ? 1 : 5, p."_ms")
		colour = p eq "fwd" ? colour_forward : p eq "bwd" ? colour_backward \
			: colour_optimizer
		text = p eq "fwd" ? "forward" : p eq "bwd" ? "backward" : "optimizer"
		last = p eq "opt"
		ink = p eq "fwd" ? "black" : "white"
		eval bar
	}
}
to = 0
y = 3
ink = "black"
do for [p in "choice library alloc"] {
	from = to
	to = from + taken(1, p."_ms")
	colour = p eq "choice" ? colour_rest : p eq "library" \
		? "#b9bec6" : "#dde0e5"
	text = p eq "choice" ? "algorithms" : p eq "library" \
		? "kernels" : "allocating"
	last = p eq "alloc"
	eval bar
}
plot NaN
