instep = on("h100").flash_benchmarking_model{status="ok"}
in_tiles = function(r)
	return instep{size=r.size, context=r.context, precision=r.precision,
		attention="flash"}
end
-- a step with naive attention over one with FlashAttention
saves = function(r) return r.step_ms/in_tiles(r).step_ms end
in_naive = instep{attention="naive"}
least_saved = all(in_naive, function(r)
	return saves(r) >= saves(in_naive{size="2.7B", precision="fp32", context=512})
end)
always_saves = all(in_naive, function(r)
	return saves(r) > 1 and in_tiles(r).peak_MiB < r.peak_MiB
end)
big_naive = on("h100").flash_benchmarking_model{size="2.7B", context=2048,
	attention="naive"}
