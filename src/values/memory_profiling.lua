-- memory_profiling.lua: what `2.7B` holds, in MiB unless stated otherwise
mem_shape = shapes["2.7B"]
mem_saved = function(T, r, w, path)       -- by one block, batch 4
	return 1024*saved_GiB("2.7B", T, r, w, path)/mem_shape.L
end
-- of P in it, eager, fp32
mem_scores_part = function(T) return 4*T*mem_shape.H*T*4/2^20/mem_saved(T, 4, 4,
	"eager") end
mem_block_gradient = 4*(block_weights(mem_shape) + 2*mem_shape.C)/2^20
mem_parameters = 4*params("2.7B")/2^20
mem_device = tonumber(meta(on("h100").memory_profiling, "memory_MiB"))
mem = on("h100").memory_profiling{size="2.7B"}
mem_steps = mem{mode="step", step=1}
mem_peak = function(context, precision, path, mode)  -- nil: did not fit
	local fits = pick(mem{context=context, precision=precision, fusion=path,
		mode=mode}, "status == 'ok' and step == 1")
	return fits[1] and max(fits, "peak_MiB")
end
mem_cell = function(context, precision, path, mode)
	local peak = mem_peak(context, precision, path, mode)
	return peak and int(peak) or "oom"
end
mem_512 = function(...) return mem_cell(512, ...) end
mem_at = function(precision, path, phase, number)
	return mem{context=512, precision=precision, fusion=path, mode="step",
		phase=phase, step=number or 1}
end
mem_GiB = function(phase, number)
	return fixed(mem_at("fp32", "eager", phase, number).peak_MiB/1024, 1)
end
-- which phase has the peak, and what the first step does otherwise
mem_peaks_backward = all(mem_steps, "peak_MiB <= mem_steps{context=context, \z
	phase='backward', precision=precision, fusion=fusion}.peak_MiB")
mem_first = mem_at("fp32", "eager", "forward", 0)
mem_later = mem_at("fp32", "eager", "forward")
mem_jump_first = near(mem_later.peak_MiB - mem_first.peak_MiB,
	mem_later.gradient_MiB, 0.001) and mem_at("fp32", "eager", "backward",
	0).peak_MiB == mem_at("fp32", "eager", "backward").peak_MiB
mem_inference = mem_peak(512, "fp32", "eager", "forward")
mem_kept_alone = mem_first.peak_MiB - mem_first.optimizer_MiB
mem_long = function(precision, path) return mem_peak(2048, precision, path,
	"step") end
mem_none_long = not (mem_long("fp32", "eager") or mem_long("fp32", "fused"))
-- ms until the host has asked for all of a step, and those of the step
mem_host = function(path)
	return max(on("h100").memory_profiling_timeline{precision="fp32", fusion=path,
		mode="step"}.ms)
end
mem_step_ms = by(on("h100").benchmarking_script{size="2.7B", context=512,
	precision="fp32"}, "fusion", "step_med_ms")
mem_array = by(on("h100").memory_profiling_saved{precision="fp32",
	fusion="eager"}, "tensor", "MiB")
mem_block_arrays = {Stream=mem_array("attn.q"), Scores=mem_array("attn.softmax"),
	Wide=mem_array("ffn.swiglu")}
mem_block_most = max(on("h100").memory_profiling_timeline{precision="fp32",
	fusion="eager", mode="forward"}.activation_MiB)
forward_rows = on("h100").memory_profiling_estimate{context=512, precision="fp32",
	fusion="eager"}
forward_peak = by(forward_rows, "size", "forward_MiB")
forward_more = map(forward_rows, "(forward_MiB \z
	- parameter_derived_MiB)/parameter_derived_MiB")
-- of bf16 against fp32, at 512
mem_saving = function(path, mode) return 1 - mem_peak(512, "bf16", path, mode)
	/mem_peak(512, "fp32", path, mode) end
mem_torch = by(on("h100").pytorch_peers{impl="pytorch-eager", size="2.7B"},
	"precision", "peak_MiB")
mem_torch_saving = 1 - mem_torch("bf16")/mem_torch("fp32")
mem_gains = function(path, mode)          -- at the contexts where both fit
	local list = {}
	for _, context in ipairs {128, 256, 512, 2048} do
		local low = mem_peak(context, "bf16", path, mode)
		local exact = mem_peak(context, "fp32", path, mode)
		if low and exact then table.insert(list, exact - low) end
	end
	return list
end
mem_less = mem_at("fp32", "fused", "backward").activation_MiB
	- mem_at("bf16", "fused", "backward").activation_MiB
mem_halved = mem_at("bf16", "eager", "backward").activation_MiB/mem_at("fp32",
	"eager", "backward").activation_MiB
mem_only_bf16 = mem_none_long and mem_long("bf16", "fused")
	and not mem_long("bf16", "eager")
mem_estimate = on("h100").memory_profiling_estimate{status="ok"}
mem_at1024 = by(mem_estimate{size="2.7B", context=1024, fusion="fused"},
	"precision", "peak_MiB")
mem_off = function(column)
	return max(mem_estimate, "abs(it[derived]/it[c] - 1)", {c=column .. "_MiB",
		derived=(column == "peak" and "" or column .. "_") .. "derived_MiB"})
end
mem_largest = on("h100").memory_profiling_tensors{mode="forward",
	precision="fp32"}
mem_scores = all(mem_largest{fusion="eager", rank={1, 2}},
	"MiB == 4*4*32*512^2/2^20 and ranges:find('attention', 1, true) ~= nil")
mem_swiglu = all(mem_largest{fusion="eager", rank={3, 4, 5, 6}},
	"MiB == 4*4*512*10240/2^20 and ranges:find('feed-forward', 1, true) ~= nil")
mem_kept = memory_profiling_saved{precision="fp32"}
mem_five = function(path)
	return sum(mem_kept{fusion=path, rank={1, 2, 3, 4, 5}}.fraction_pct)/100
end
mem_depth = function(path, k)  -- k = 1: all blocks, 2: one less
	return each(memory_profiling_blocks{precision="fp32", fusion=path})[k]
end
mem_backward = mem_depth("eager", 1)
mem_jump = mem_backward.gradient_MiB - mem_depth("eager", 2).gradient_MiB
mem_freed = all(memory_profiling_blocks, "near(bwd_least_MiB, bwd_most_MiB, \z
	0.002) and bwd_most_MiB < 0")
mem_given_back = mem_freed and mem_backward.later_gradient_MiB == 0
	and near(-mem_backward.bwd_most_MiB, mem_backward.fwd_most_MiB, 0.002)
	and near(-mem_depth("fused", 1).bwd_most_MiB,
	mem_depth("fused", 1).fwd_most_MiB, 0.002)
