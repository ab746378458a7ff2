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
four_hoped = function(size)
	local two = four_row(2, size, "zero1", "optimizer", "opt_ms")
	return four_row(2, size, "zero1", "optimizer")
		- two*26/60/four_row(2, size, "single", "comm", "period_ms")
end
four_ten = function(rows) return rows{size="10B", sums="comm"} end
-- four replicas over two, one host
four_doubled = function(size) return four_grid(4, size, 1, 4, "step_ms")
	/four_grid(4, size, 1, 2, "step_ms") end
-- of the grids of four
four_least = function(size) return min(four_grid(4, size, 1, 4),
	four_grid(4, size, 2, 2), four_grid(4, size, 4, 1)) end
four_small = all({"small", "medium", "large"},
	"four_least(it) == four_grid(4, it, 1, 4)")
four_sd = function(strategy, size) return four_row(4, size or "xl", strategy,
	"optimizer", "step_sd_ms") end
-- ms by which ZeRO-1 is ahead
four_ahead = function(size) return four_row(4, size, "fsdp", "optimizer",
	"period_ms") - four_row(4, size, "zero1", "optimizer", "period_ms") end
four_two = all({"xl", "2.7B"}, "max(four_row(4, it, 'zero1', 'optimizer'), \z
	four_row(4, it, 'fsdp', 'optimizer')) < min(four_row(4, it, 'ddp', 'comm'), \z
	four_row(4, it, 'sharded', 'comm'))")
blocked_of = function(size, strategy, sums) return four_row(4, size, strategy,
	sums, "blocked_ms")/four_row(4, size, strategy, sums, "period_ms") end
four_blocked = max({"xl", "2.7B"}, "max(blocked_of(it, 'ddp', 'comm'), \z
	blocked_of(it, 'zero1', 'optimizer'))")
four_open = blocked_of("xl", "sharded", "comm")
four_lost = max(four.optimizer_state_sharding_accounting_times{sums="comm",
	strategy="ddp"}, "abs(loss/four_row(4, size, 'zero1', 'comm', 'loss') - 1)")
