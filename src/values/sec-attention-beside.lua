cudnn_long = flash_rows{variant="pytorch-cudnn"}("n > 1024")
-- shapes on which cuDNN takes longer (sign 1) or less (-1) than a kernel, beyond
-- the sum of both deviations and both by calls and by replays
apart = function(variant, pass, sign)
	local found = 0
	for _, c in ipairs(each(cudnn_long)) do
		local r = flash_on(variant, c.heads, c.n, c.d)
		local spread = r[pass .. "_sd_ms"] + c[pass .. "_sd_ms"]
		local calls = sign*(c[pass .. "_ms"] - r[pass .. "_ms"])
		local replays = sign*(c[pass .. "_ms"] - r[pass .. "_replay_ms"])
		if calls > spread and replays > spread then found = found + 1 end
	end
	return found
end
never_behind = apart("warp_specialized", "bwd", -1) == 0
	and apart("warp_specialized-atomic", "bwd", -1) == 0
forward_leads = function(heads)
	return map(cudnn_long("(heads == 1) == one", {one=heads == 1}),
		"fwd_ms/flash_on('warp_specialized', heads, n, d).fwd_ms")
end
exact_ours = flash_on("split_fp16", 1, 16384, 128, "fp32")
exact_theirs = flash_on("pytorch-efficient", 1, 16384, 128, "fp32")
fp32_gain = exact_theirs.both_ms/exact_ours.both_ms
fp32_replayed = exact_theirs.both_ms/(exact_ours.fwd_replay_ms
	+ exact_ours.bwd_replay_ms)
python_ours = on("h100").flash_benchmarking_calls{op="attention", tensors="gpu",
	impl="ours"}
python_cudnn = on("h100").flash_benchmarking_calls{op="attention", tensors="gpu",
	impl="pytorch-cudnn"}
