-- what the order adds to a backward pass, by calls and by replays
det_costs = {}
for _, r in ipairs(each(flash_rows{variant="warp_specialized-atomic",
		heads={16, 32}})) do
	local fixed_order = flash_on("warp_specialized", r.heads, r.n, r.d)
	table.insert(det_costs, fixed_order.bwd_ms/r.bwd_ms - 1)
	table.insert(det_costs, fixed_order.bwd_replay_ms/r.bwd_replay_ms - 1)
end
-- of one head, by calls; where it is most
det_alone = of("flash_alone('warp_specialized', n, d).bwd_ms/bwd_ms - 1")
det_rows = flash_grid{variant="warp_specialized-atomic"}
det_worst = argmax(det_rows, "bwd_ms")
for _, r in ipairs(each(det_rows)) do
	if det_alone(r) > det_alone(det_worst) then det_worst = r end
end
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
