grid_rows = on("h100").flash_benchmarking_grid{status="ok"}
grid_cudnn = grid_rows{variant="pytorch-cudnn"}
grid = by(grid_rows, "variant, causal, batch, heads, n, d")
-- our time over cuDNN's; how: "" by calls, "_replay"; the worse of both sums
grid_over = function(variant, pass, how, ...) return grid(variant,
	...)[pass .. how .. "_ms"]/grid("pytorch-cudnn", ...)[pass .. how ..
	"_ms"] end
grid_worst = function(r, pass, how)
	return max({"warp_specialized", "warp_specialized-atomic"}, "grid_over(it, \z
		pass, how, r.causal, r.batch, r.heads, r.n, r.d)",
		{pass=pass, how=how, r=r})
end
-- without the mask: each pass, by calls and by replays
unmasked = map(grid_cudnn{causal="no"}, "grid_worst(it, 'fwd', '')")
	.. map(grid_cudnn{causal="no"}, "grid_worst(it, 'bwd', '')")
	.. map(grid_cudnn{causal="no"}, "grid_worst(it, 'fwd', '_replay')")
	.. map(grid_cudnn{causal="no"}, "grid_worst(it, 'bwd', '_replay')")
-- a pass's time by calls over that by replays
called = function(r, pass) return r[pass .. "_ms"]/r[pass .. "_replay_ms"] end
-- the most by which calls and replays differ in passes of half a millisecond
call_spread = max({"fwd", "bwd"}, "max(pick(grid_rows{variant={ \z
	'warp_specialized', 'pytorch-cudnn'}}, 'it[p] >= 0.5', \z
	{p=it .. '_replay_ms'}), 'abs(called(it, pass) - 1)', {pass=it})")
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
