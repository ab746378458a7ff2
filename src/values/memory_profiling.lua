-- memory_profiling.lua: what `2.7B` holds, in MiB unless stated otherwise
mem_saved = function(T, r, w, path)       -- by one block, batch 4
	return 1024*saved_GiB("2.7B", T, r, w, path)/shapes["2.7B"].L
end
mem_scores_MiB = function(T) return 4*4*32*T^2/2^20 end  -- of P, in fp32
mem_block_gradient = 4*(block_weights(shapes["2.7B"]) + 2*2560)/2^20
mem_parameters = 4*params("2.7B")/2^20
mem_device = tonumber(meta(on("h100").memory_profiling, "memory_MiB"))
mem = on("h100").memory_profiling{size="2.7B"}
mem_steps = mem{mode="step", step=1}
mem_peak = function(context, precision, path, mode)  -- nil: did not fit
	local fits = pick(mem{context=context, precision=precision, fusion=path,
		mode=mode}, "status == 'ok' and step == 1")
	return fits[1] and max(fits, "peak_MiB")
end
mem_cell = function(...) return mem_peak(...) and int(mem_peak(...)) or "oom" end
mem_at = function(precision, path, phase, number)
	return mem{context=512, precision=precision, fusion=path, mode="step",
		phase=phase, step=number or 1}
end
mem_GiB = function(phase, number)
	return fixed(mem_at("fp32", "eager", phase, number).peak_MiB/1024, 1)
end
mem_peaks_backward = all(mem_steps, "peak_MiB <= mem_steps{context=context, \z
	phase='backward', precision=precision, fusion=fusion}.peak_MiB")
mem_first = mem_at("fp32", "eager", "forward", 0)
mem_later = mem_at("fp32", "eager", "forward")
mem_inference = mem_peak(512, "fp32", "eager", "forward")
mem_kept_alone = mem_first.peak_MiB - mem_first.optimizer_MiB
-- of an eager forward pass: when the host asks; what it has asked for in 10 ms
mem_host = on("h100").memory_profiling_timeline{precision="fp32", fusion="eager",
	mode="step", phase="forward"}
mem_queued = max(mem_host("ms < 10").activation_MiB)/mem_later.activation_MiB
mem_only_bf16 = all(mem{context=2048, mode="step", status="ok"},
	"precision == 'bf16' and fusion == 'fused'")
mem_kept = on("h100").memory_profiling_saved{precision="fp32"}
mem_array = by(mem_kept{fusion="eager"}, "tensor", "MiB")
mem_block_arrays = {Stream=mem_array("attn.q"), Scores=mem_array("attn.softmax"),
	Wide=mem_array("ffn.swiglu")}
mem_block_most = max(on("h100").memory_profiling_timeline{precision="fp32",
	fusion="eager", mode="forward"}.activation_MiB)
forward_rows = on("h100").memory_profiling_estimate{context=512, precision="fp32",
	fusion="eager"}
forward_peak = by(forward_rows, "size", "forward_MiB")
forward_more = by(forward_rows, "size", "forward_MiB/parameter_derived_MiB - 1")

mem_saving = function(context, path, mode) return 1 - mem_peak(context, "bf16",
	path, mode)/mem_peak(context, "fp32", path, mode) end
mem_torch = by(on("h100").pytorch_peers{impl="pytorch-eager", size="2.7B"},
	"precision", "peak_MiB")
mem_torch_saving = 1 - mem_torch("bf16")/mem_torch("fp32")
mem_halved = mem_at("bf16", "fused", "backward").activation_MiB
	/mem_at("fp32", "fused", "backward").activation_MiB
mem_estimate = on("h100").memory_profiling_estimate{status="ok"}
mem_off = function(column)
	return max(mem_estimate, "abs(it[derived]/it[c] - 1)", {c=column .. "_MiB",
		derived=(column == "peak" and "" or column .. "_") .. "derived_MiB"})
end

mem_largest = by(on("h100").memory_profiling_tensors{mode="forward",
	precision="fp32"}, "fusion, rank")
mem_blocks = on("h100").memory_profiling_blocks{precision="fp32"}
mem_gradients = mem_blocks{fusion="eager"}.gradient_MiB  -- two depths
mem_jump = mem_gradients[1] - mem_gradients[2]
