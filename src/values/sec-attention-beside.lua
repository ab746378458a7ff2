cudnn_long = flash_rows{variant="pytorch-cudnn"}("n > 1024")
-- shapes on which cuDNN takes longer (sign 1) or less (-1) than a kernel, beyond
-- the sum of both deviations and both by calls and by replays
apart = function(variant, pass, sign)
	return count(cudnn_long, "min(sign*(it[ms] - of_ours(it)[ms]), sign*(it[ms] \z
		- of_ours(it)[replay])) > it[sd] + of_ours(it)[sd]", {sign=sign,
		of_ours=of("flash_on(variant, heads, n, d)", {variant=variant}),
		ms=pass .. "_ms", sd=pass .. "_sd_ms", replay=pass .. "_replay_ms"})
end
exact_gain = flash_on("pytorch-efficient", 1, 16384, 128, "fp32").both_ms
	/flash_on("split_fp16", 1, 16384, 128, "fp32").both_ms
python_call = by(on("h100").flash_benchmarking_calls{op="attention",
	tensors="gpu"}, "impl", "both_call_us")
