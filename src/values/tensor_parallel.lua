tp_row = by(h200.tensor_parallel{precision="bf16"}, "size, tp, dp")
h200_group = function(size, tp) return tp_row(size, tp, 1) end
tp_rows = ok_of(h200.tensor_parallel)
waits_of = of("gather_ms + scatter_ms + reduce_ms")
passes_of = function(size)                   -- without waits, over one rank's
	local two, one = h200_group(size, 2), h200_group(size, 1)
	return (two.fwd_ms + two.bwd_ms - waits_of(two))/(one.fwd_ms + one.bwd_ms)
end
group_off = function(size)                   -- of T_1/2 and isolated collectives
	local two = h200_group(size, 2)
	return (h200_group(size, 1).step_ms/2 + two.alone_ms)/two.step_ms - 1
end
group_call_us = function(size)               -- beyond T_1/2 and the waits
	local two, one = h200_group(size, 2), h200_group(size, 1)
	return (two.fwd_ms + two.bwd_ms - waits_of(two)
		- (one.fwd_ms + one.bwd_ms)/2)/two.collectives*1e3
end
group_calls = {group_call_us("small"), group_call_us("medium"),
	group_call_us("large"), group_call_us("xl"), group_call_us("2.7B")}
