# learning.gp: training and held-out loss against step, and three baselines
height = 66
load "src/plots/style.gp"
set xlabel "step"
set ylabel "nats per byte"
set key right
plot table using "step":"train_nats" with lines lt 1 title "training", \
	"" using "step":"held_out_nats" with lines lt 2 title "held out", \
	"" using "step":"uniform_nats" with lines lt 9 title "uniform", \
	"" using "step":"unigram_nats" with lines lt 9 dt 2 title "unigram", \
	"" using "step":"bigram_nats" with lines lt 9 dt 4 title "bigram"
