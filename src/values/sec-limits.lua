-- sec-limits.lua: one call or step of each experiment, over its bound
limit_split = function(size, over) return ratio(over(r_of(size, "bf16")), 3) end
-- over all tables with this shape, by calls and by replays
limit_flash = function(pass)
	return flash_both_ways(function(...) return 1/flash_fraction(...) end,
		flash_lead, pass, function(x) return ratio(x, 3) end)
end
limit_hidden, limit_open = over_at("xl", "overlap"), over_at("xl", "naive")
limit_waits = h200_over{size="2.7B", precision="bf16", kind="overlap"}
limit_tp = h200_group("2.7B", 2)
-- backward pass, of the step
limit_longer = of("(bwd_ms - single_bwd_ms)/step_ms")
limit_jit = function(size)
	local of = on("h100").torch_compile_model{size=size, precision="bf16"}
	return of{impl="jit"}.step_ms/of{impl="fused"}.step_ms
end
-- backward, to that of one GPU
limit_pass = function(sums) return four_row(2, "2.7B", "fsdp", sums, "bwd_ms")
	/four_row(2, "2.7B", "single", "comm", "bwd_ms") end
