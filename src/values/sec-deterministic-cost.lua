-- what the order adds to a backward pass, by calls and by replays
det_cost = function(column)
	return map(flash_rows{variant="warp_specialized-atomic", heads={16, 32}},
		"flash_on('warp_specialized', heads, n, d)[c]/it[c] - 1", {c=column})
end
det_costs = det_cost("bwd_ms") .. det_cost("bwd_replay_ms")
-- of one head, by calls; where it is most
det_alone = of("flash_alone('warp_specialized', n, d).bwd_ms/bwd_ms - 1")
det_worst = argmax(flash_grid{variant="warp_specialized-atomic"}, "det_alone(it)")
det_short = max(flash_grid{variant="warp_specialized-atomic"}("n >= 1024 \z
	and n <= 16384"), "det_alone(it)")
-- what the order adds to the clocks of a launch, and to those in which an SM has
-- a block, as the tensor pipe's clocks are the same in both
added_clocks = v4_bwd.launch_us*v4_bwd.SM_GHz
	/(atomic_bwd.launch_us*atomic_bwd.SM_GHz) - 1
added_active = atomic_bwd.tensor_pct/v4_bwd.tensor_pct - 1
