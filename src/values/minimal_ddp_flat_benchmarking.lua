flat_row = function(size, kind)
	return h200.minimal_ddp_flat_benchmarking{size=size, precision="bf16",
		kind=kind}
end

flat_gain = function(size)                   -- of a step
	return 1 - flat_row(size, "flat").step_ms/flat_row(size, "naive").step_ms
end

gains_fall = increasing({flat_gain("2.7B"), flat_gain("xl"), flat_gain("large"),
	flat_gain("medium"), flat_gain("small")})

-- us of one collective, where flat has saved all others
call_us = function(size)
	local naive, flat = flat_row(size, "naive"), flat_row(size, "flat")
	return 1e3*(naive.alone_ms - flat.alone_ms)/(naive.buckets - 1)
end

call_least, call_most = over_all(ok_of(h200.minimal_ddp_flat_benchmarking,
	{kind="flat", precision="bf16"}), function(r) return call_us(r.size) end)
