four = on("h200x4")
four_shards = ok_of(four.fsdp_accounting)
-- of two or four: a column of a step, or its time over that of one GPU there
four_row = function(gpus, size, strategy, sums, column)
	local of = gpus == 4 and four or h200
	local one = of.optimizer_state_sharding_accounting_times{size=size,
		precision="bf16", strategy="single"}
	local rows = strategy == "fsdp" and of.fsdp_accounting{prefetch=1}
		or of.optimizer_state_sharding_accounting_times
	local r = rows{size=size, precision="bf16", strategy=strategy, sums=sums}
	return column and r[column] or r.period_ms/one.period_ms
end
four_over = function(...) return ratio(four_row(...), 3) end
four_grid = function(gpus, size, tp, dp, column)
	local of = (gpus == 4 and four or h200).tensor_parallel
	local r = of{size=size, precision="bf16", tp=tp, dp=dp}
	return column and r[column] or r.step_ms/of{size=size, precision="bf16", tp=1,
		dp=1}.step_ms
end
four_part = function(...) return ratio(four_grid(...), 3) end
-- ms; 26 + 2R bytes of P/R elements
four_update = four_row(2, "xl", "zero1", "optimizer", "opt_ms")*34/60
-- is this way to divide one batch among four the fastest?
four_least = function(size, tp, dp) return four_grid(4, size, tp, dp)
	== min(four_grid(4, size, 1, 4), four_grid(4, size, 2, 2),
	four_grid(4, size, 4, 1)) end
blocked_of = function(size, strategy, sums) return four_row(4, size, strategy,
	sums, "blocked_ms")/four_row(4, size, strategy, sums, "period_ms") end
