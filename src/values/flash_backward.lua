-- FLOPs of five matmuls over those of the tensor cores in the clocks of the
-- kernels of a backward pass
backward_part = function(variant, n, heads)
	local clocks = 0
	for _, r in ipairs(each(counter_rows{op="attention backward",
			variant=variant})) do
		clocks = clocks + r.launch_us*1e3*r.SM_GHz
	end
	return tensor_part(5, heads or 16, n or 16384, clocks)
end
flash_one_kernel = flash_16("wgmma").bwd_ms > flash_lead.bwd_ms
	and flash_16("wgmma").bwd_ms > flash_16("warp_specialized-atomic").bwd_ms
	and flash_16("wgmma").bwd_replay_ms > flash_lead.bwd_replay_ms
	and flash_16("wgmma").bwd_replay_ms
	> flash_16("warp_specialized-atomic").bwd_replay_ms
