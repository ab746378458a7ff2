counter_label = function(variant, kernel)
	local part = kernel:match("_d[kvq]+$")
	return flash_label(variant):gsub("^split_fp16$", "v5 split_fp16")
		.. (part and part:gsub("_", ": ") or kernel == "split_tiles"
		and ": splitting" or "")
end
-- bytes of shared memory that we count, in clocks, over the clocks of the matmuls
-- meanwhile; and what the counter says over that count
smem_read = {mma_sync={9, 4}, wgmma={3, 4}, warp_specialized={5, 8}}
smem_over_count = function(variant)
	local r, count = counters_of("attention forward", variant), smem_read[variant]
	return r.smem_pct/100/(flop_part(r, 2)*count[1]/count[2])
end
smem_ratios = map({"mma_sync", "wgmma", "warp_specialized"}, smem_over_count)
-- clocks of the tensor pipe over those that the FLOPs should take
mma_clocks = v2_fwd.tensor_pct/100/flop_part(v2_fwd, 2)
wgmma_clocks = map({v3_fwd, v4_fwd}, "tensor_pct/100/flop_part(it, 2)")
-- percent of the time in which tensor pipe and SFU are both busy, at least
both3 = v3_fwd.tensor_pct + v3_fwd.xu_pct - 100
both4 = v4_fwd.tensor_pct + v4_fwd.xu_pct - 100
ncu_over_calls = v4_bwd.launch_us/v4_bwd.share/1e3/flash_lead.bwd_ms
