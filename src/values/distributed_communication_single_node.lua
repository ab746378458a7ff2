gpu_reduces = ok_of(h200.distributed_communication_single_node,
	{dtype="fp32", device="cuda"})
gpu_reduce = by(gpu_reduces, "transport, ranks, bytes")
host_reduce = by(on("cpu").distributed_communication_single_node{status="ok",
	device="cpu", dtype="fp32"}, "transport, ranks, bytes")
-- of t = a + b s, with the least squares of relative errors; a is not negative
line_through = function(points)
	local uu, uv, vv, u, v = 0, 0, 0, 0, 0
	for _, p in ipairs(points) do
		local x, y = 1/p.ms, p.bytes/p.ms
		uu, uv, vv, u, v = uu + x*x, uv + x*y, vv + y*y, u + x, v + y
	end
	local det = uu*vv - uv*uv
	local a, b = (u*vv - v*uv)/det, (uu*v - uv*u)/det
	if a < 0 then a, b = 0, v/vv end
	return a, b
end
held_out = {[3e6]=true, [30e6]=true, [300e6]=true}
-- us, GB/s of the bus, MB where both terms are equal; the largest error held out
fit = function(transport, ranks)
	local points, held = {}, {}
	for _, r in ipairs(each(gpu_reduces{transport=transport, ranks=ranks})) do
		table.insert(held_out[r.bytes] and held or points,
			{bytes=r.bytes, ms=r.time_ms})
	end
	local a, b = line_through(points)
	local worst = 0
	for _, p in ipairs(held) do
		worst = max(worst, abs((a + b*p.bytes)/p.ms - 1))
	end
	return {o_us=a*1e3, w_GBps=2*(ranks - 1)/ranks/b*1e-6, equal_MB=a/b*1e-6,
		error=worst}
end
fit_worst = max(gpu_reduces{bytes=1e7}, "fit(transport, ranks).error")
nccl_widest = all(gpu_reduces{bytes=1e9, ranks=2,
	transport={"symmetric", "push", "ring", "gloo"}}, "busbw_GBps \z
	< gpu_reduce('nccl', 2, 1e9).busbw_GBps")
symmetric_first = all(gpu_reduces{bytes=1e7}, "time_ms \z
	>= gpu_reduce('symmetric', 2, 1e7).time_ms")
ring_bus = function(ranks) return host_reduce("ring", ranks, 1e7).busbw_GBps end
alternate_over = function(ranks) return host_reduce("alternate", ranks,
	1e7).time_ms/host_reduce("ring", ranks, 1e7).time_ms end
-- both halves of an all-reduce on two H200, one after the other
h200_reduce = gpu_reduce("nccl", 2, 1e9).busbw_GBps
