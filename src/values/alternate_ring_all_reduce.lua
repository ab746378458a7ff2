-- alternate_ring_all_reduce.lua: both rings, counted and by formula
ring = alternate_ring_all_reduce
six = ring{elements=6720}
rings_exact = all(six, function(r)
	return r.ring_counted == r.ring_nbytes
		and r.alternate_counted == r.alternate_nbytes
end)
half_N = all(six(function(r) return r.N > 1 end), function(r)
	return near(r.alternate_counted/r.ring_counted, r.N/2, 1e-9)
end)
never_differ = max(ring.ring_differ) == 0
from_three = six{N=2}.alternate_differ == 0
	and all(six(function(r) return r.N > 2 end), function(r)
		return r.alternate_differ > 0
	end)
uneven_ring = ring{elements=1000, N=64}
