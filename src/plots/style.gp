# style.gp: what all figures share; the caller sets `table` and `out`
if (!exists("height")) height = 72
set terminal pdfcairo size 123/25.4, height/25.4 \
	font "TeX Gyre Pagella,8.5" fontscale 0.72 linewidth 0.9 dashlength 2 \
	enhanced rounded
set output out
set encoding utf8
set minussign
set datafile separator "\t"
set datafile commentschars "#"
set datafile missing "-"
set datafile columnheaders
only(name, value) = stringcolumn(name) eq value ? 1 : NaN
is(name, value) = column(name) == value ? 1 : NaN
colour_forward = "#9db0cf"
colour_backward = "#1b3560"
colour_optimizer = "#1f6b5c"
colour_communication = "#d9793a"
colour_reduction = "#cfbade"
colour_wait = "#ec6a5e"
colour_ours = "#1b3560"
colour_pytorch = "#d9793a"
colour_cudnn = "#1f6b5c"
colour_eager = "#6a6a6a"
colour_fused = "#1b3560"
colour_ddp = "#d9793a"
colour_zero = "#1f6b5c"
colour_fsdp = "#dccbe8"
colour_parameters = "#1b3560"
colour_gradients = "#7a9bd1"
colour_state = "#1f6b5c"
colour_activations = "#e3c16f"
colour_temporary = "#8f959e"
colour_matmul = "#1b3560"
colour_attention = "#b08ac6"
colour_softmax = "#d9793a"
colour_norm = "#7a1f2b"
colour_ffn = "#e3c16f"
colour_rest = "#8c8c8c"
set linetype 1 lc rgb "#1b3560" lw 1.4 pt 7 ps 0.45
set linetype 2 lc rgb "#d9793a" lw 1.4 pt 5 ps 0.42 dt (8, 3)
set linetype 3 lc rgb "#1f6b5c" lw 1.4 pt 9 ps 0.5 dt (3, 2)
set linetype 4 lc rgb "#b08ac6" lw 1.4 pt 13 ps 0.5
set linetype 5 lc rgb "#7a1f2b" lw 1.4 pt 6 ps 0.45 dt (8, 3, 2, 3)
set linetype 6 lc rgb "#8c8c8c" lw 1.2 pt 4 ps 0.42
set linetype 9 lc rgb "#777777" lw 0.8 dt (2, 3)
set linetype cycle 6
set style fill solid 0.85 noborder
set boxwidth 0.8 relative
set border 3 lc rgb "#444444" lw 0.6
set tics nomirror out scale 0.5 textcolor rgb "#222222"
set grid ytics lc rgb "#dddddd" lw 0.4 dt solid
set key tmargin left horizontal Left reverse samplen 2.2 width 3
set style histogram clustered gap 1
