# sizes.gp: the sizes of models, side by side
sizes = "small medium large xl 2.7B"
index_of(name) = sum [i=1:words(sizes)] (word(sizes, i) eq name ? i : 0)
set xrange [0.4:words(sizes) + 0.6]
set xtics ("small" 1, "medium" 2, "large" 3, "xl" 4, "2.7B" 5) scale 0
