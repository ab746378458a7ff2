-- clocks of v2's tensor pipe over those that the FLOPs should take
mma_clocks = v2_fwd.tensor_pct/100/flop_part(v2_fwd, 2)
-- percent of the time in which tensor pipe and SFU are both busy, at least
both3 = v3_fwd.tensor_pct + v3_fwd.xu_pct - 100
both4 = v4_fwd.tensor_pct + v4_fwd.xu_pct - 100
ncu_over_calls = v4_bwd.launch_us/v4_bwd.share/1e3/flash_lead.bwd_ms
