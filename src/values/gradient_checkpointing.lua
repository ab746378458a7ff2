-- gradient_checkpointing.lua: `2.7B` at context 2048, bf16, fused; MiB
ckpt = on("h100").gradient_checkpointing{status="ok"}
ckpt_one = ckpt{nested="no"}
ckpt_deep = ckpt{nested="yes"}
ckpt_A = mem_saved(2048, 4, 2, "fused")
ckpt_I = 4*2048*2560*4/2^20
ckpt_star = sqrt(32*ckpt_I/ckpt_A)
ckpt_M = function(K) return (32//K - 1)*ckpt_I + K*ckpt_A end
ckpt_best = argmin(ckpt_one, "peak_MiB")
ckpt_more = function(K) return ckpt_one{K=K}.peak_MiB - ckpt_best.peak_MiB end
ckpt_off = max(ckpt, "abs(derived_MiB - peak_MiB)")
-- blocks run again, in forward passes; the longer step, as a part
ckpt_again = by(ckpt_one, "K", "(bwd_ms - ckpt_one{K=0}.bwd_ms)/fwd_ms")
ckpt_longer = by(ckpt_one, "K", "step_ms/ckpt_one{K=0}.step_ms - 1")
