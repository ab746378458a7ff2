# collectives.gp: time and bus bandwidth of all-reduces of two ranks, with fits
height = 74
load "src/plots/style.gp"
set datafile missing NaN
head(key) = system("sed -n 's/^# ".key.": //p' ".table)
known = head("backend") eq "cuda" \
	? "cuda/nccl cuda/symmetric cuda/push cuda/ring cuda/gloo cpu/ring cpu/gloo" \
	: "cpu/ring cpu/owner cpu/alternate cpu/mpi cpu/gloo"
device(s) = s[1:strstrt(s, "/") - 1]
transport(s) = s[strstrt(s, "/") + 1:*]
mine(s) = only("device", device(s))*only("transport", transport(s)) \
	*only("dtype", "fp32")*is("ranks", 2)
held(bytes) = bytes == 3e6 || bytes == 30e6 || bytes == 300e6
free(s) = mine(s)*(held(column("bytes")) ? NaN : 1)
kept(s) = mine(s)*(held(column("bytes")) ? 1 : NaN)
u(s) = free(s)/column("time_ms")
v(s) = u(s)*column("bytes")*1e-6
array a[9]
array b[9]
filled(i) = int(word("7 5 9 13 11 15 7", i))
shown = ""
do for [k=1:words(known)] {
	s = word(known, k)
	stats table using (mine(s) == 1 ? 1 : 0) nooutput
	if (STATS_sum < 4) { continue }
	shown = shown." ".s
	i = words(shown)
	stats table using (u(s)):(v(s)) nooutput
	det = STATS_sumsq_x*STATS_sumsq_y - STATS_sumxy**2
	a[i] = (STATS_sum_x*STATS_sumsq_y - STATS_sum_y*STATS_sumxy)/det
	b[i] = (STATS_sumsq_x*STATS_sum_y - STATS_sumxy*STATS_sum_x)/det
	if (a[i] < 0) { a[i] = 0; b[i] = STATS_sum_y/STATS_sumsq_y }
}
stats table using (column("bytes")*1e-6*is("ranks", 2)) nooutput
largest = STATS_max
set multiplot layout 1,2
set logscale xy
set xrange [0.4:largest*1.3]
set xlabel "bytes of the array, s (MB)"
set samples 200
set key noenhanced maxrows 2 width 1 samplen 1.3
set ylabel "time (ms)"
plot for [i=1:words(shown)] a[i] + b[i]*x with lines lt i dt 1 lw 0.8 notitle, \
	for [i=1:words(shown)] table using (column("bytes")*1e-6): \
	(free(word(shown, i))*column("time_ms")) with points lt i \
	pt filled(i) title word(shown, i), \
	for [i=1:words(shown)] table using (column("bytes")*1e-6): \
	(kept(word(shown, i))*column("time_ms")) with points lt i pt 6 notitle
unset key
set ylabel "bus bandwidth (GB/s)"
plot for [i=1:words(shown)] x/(a[i] + b[i]*x) with lines lt i dt 1 lw 0.8, \
	for [i=1:words(shown)] table using (column("bytes")*1e-6): \
	(free(word(shown, i))*column("busbw_GBps")) with points lt i \
	pt filled(i), \
	for [i=1:words(shown)] table using (column("bytes")*1e-6): \
	(kept(word(shown, i))*column("busbw_GBps")) with points lt i pt 6
unset multiplot
