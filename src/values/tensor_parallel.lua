tp_row = by(h200.tensor_parallel{precision="bf16"}, "size, tp, dp")
h200_group = function(size, tp) return tp_row(size, tp, 1) end
tp_rows = ok_of(h200.tensor_parallel)
waits_of = of("gather_ms + scatter_ms + reduce_ms")
group_off = function(size)                   -- of T_1/2 and isolated collectives
	local two = h200_group(size, 2)
	return (h200_group(size, 1).step_ms/2 + two.alone_ms)/two.step_ms - 1
end
group_call_us = function(size)               -- beyond T_1/2 and the waits
	local two = h200_group(size, 2)
	return (both_of(two) - waits_of(two) - both_of(h200_group(size, 1))/2)
		/two.collectives*1e3
end
group_calls = map({"small", "medium", "large", "xl", "2.7B"}, group_call_us)
