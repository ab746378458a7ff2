-- what the order adds to a backward pass, by calls and by replays
det_cost = function(column)
	return map(flash_rows{variant="warp_specialized-atomic", heads={16, 32}},
		"flash_on('warp_specialized', heads, n, d)[c]/it[c] - 1", {c=column})
end
det_costs = det_cost("bwd_ms") .. det_cost("bwd_replay_ms")
-- of one head, by calls; where it is most
det_alone = of("flash_alone('warp_specialized', n, d).bwd_ms/bwd_ms - 1")
det_rows = flash_grid{variant="warp_specialized-atomic"}
det_worst = argmax(det_rows, "det_alone(it)")
-- units of time in which 132 SMs work off tiles of 1, 2, ... units of one head,
-- each taken by whichever SM is free first, the shortest or the longest first
makespan = function(tiles, shortest)
	local free = {}
	for i = 1, 132 do free[i] = 0 end
	for tile = 1, tiles do
		table.sort(free)
		free[1] = free[1] + (shortest and tile or tiles + 1 - tile)
	end
	return max(free)
end
-- what the order adds to the clocks of a launch, and to those in which an SM has
-- a block, as the tensor pipe's clocks are the same in both
added_clocks = v4_bwd.launch_us*v4_bwd.SM_GHz
	/(atomic_bwd.launch_us*atomic_bwd.SM_GHz) - 1
added_active = atomic_bwd.tensor_pct/v4_bwd.tensor_pct - 1
