flat_row = by(h200.minimal_ddp_flat_benchmarking{precision="bf16"}, "size, kind")
flat_gain = function(size) return 1 - flat_row(size, "flat").step_ms  -- of a step
	/flat_row(size, "naive").step_ms end
-- us of one collective, where flat has saved all others
call_us = function(size)
	local naive, flat = flat_row(size, "naive"), flat_row(size, "flat")
	return 1e3*(naive.alone_ms - flat.alone_ms)/(naive.buckets - 1)
end
call_least, call_most = ends(ok_of(h200.minimal_ddp_flat_benchmarking,
	{kind="flat", precision="bf16"}), "call_us(size)")
