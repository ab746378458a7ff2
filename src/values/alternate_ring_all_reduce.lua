-- alternate_ring_all_reduce.lua: both rings, counted and by formula
ring = alternate_ring_all_reduce
six = ring{elements=6720}
uneven_ring = ring{elements=1000, N=64}
