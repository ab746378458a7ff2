gpu_reduces = ok_of(h200.distributed_communication_single_node,
	{dtype="fp32", device="cuda"})
gpu_reduce = by(gpu_reduces, "transport, ranks, bytes")
host_reduces = ok_of(h200.distributed_communication_single_node_hosts,
	{dtype="fp32"})
host_reduce = by(host_reduces, "transport, ranks, bytes")
host_call = function(ranks)                  -- o of the ring in us, by a line
	return 1e3*line_through(host_reduces{transport="ring", ranks=ranks})
end
alternate_over = function(ranks)             -- the ring's time, 1 GB
	return host_reduce("alternate", ranks, 1e9).time_ms
		/host_reduce("ring", ranks, 1e9).time_ms
end
six_over = function(transport)               -- the time of two processes, 1 GB
	return host_reduce(transport, 6, 1e9).time_ms
		/host_reduce(transport, 2, 1e9).time_ms
end
ring_memory = function(ranks)                -- GB/s, if no cache helps
	return ranks*(4 + 3/2)*host_reduce("ring", ranks, 1e9).busbw_GBps
end
-- of t = a + b s, with the least squares of relative errors; a is not negative
line_through = function(rows)
	local uu, uv, vv = sum(rows, "1/time_ms^2"), sum(rows, "bytes/time_ms^2"),
		sum(rows, "(bytes/time_ms)^2")
	local u, v = sum(rows, "1/time_ms"), sum(rows, "bytes/time_ms")
	local a, b = (u*vv - v*uv)/(uu*vv - uv*uv), (uu*v - uv*u)/(uu*vv - uv*uv)
	if a < 0 then return 0, v/vv end
	return a, b
end
held_out = {[3e6]=true, [30e6]=true, [300e6]=true}
-- us, GB/s of the bus, MB where both terms are equal; the largest error held out
fit = function(transport, ranks)
	local rows = gpu_reduces{transport=transport, ranks=ranks}
	local a, b = line_through(pick(rows, "not held_out[bytes]"))
	local off = map(pick(rows, "held_out[bytes]"),
		"abs((a + b*bytes)/time_ms - 1)", {a=a, b=b})
	return {o_us=a*1e3, w_GBps=2*(ranks - 1)/ranks/b*1e-6, equal_MB=a/b*1e-6,
		error=max(off .. {0})}
end
fit_worst = max(gpu_reduces{bytes=1e7}, "fit(transport, ranks).error")
h200_reduce = gpu_reduce("nccl", 2, 1e9).busbw_GBps
-- both halves of an all-reduce of host arrays, one after the other, in ms
host_halves = function(ranks, bytes)
	return sum(h200.distributed_communication_single_node_collectives{
		device="cpu", transport="ring", ranks=ranks, dtype="fp32", bytes=bytes,
		collective={"reduce-scatter", "all-gather"}}, "time_ms")
end
