tiling = on("h100").flash_benchmarking_tiles{status="ok"}
over_best = function(r)
	return r.chosen_ms/math.min(r.m64_ms, r.multi_warpgroup_ms, r.split_kv_ms)
end
small_heads = tiling{d={16, 32, 64}, heads=1, batch=1, n={1024, 4096, 16384}}
splits = all(small_heads, function(r)
	return r.split_kv_ms < r.m64_ms and r.split_kv_ms < r.multi_warpgroup_ms
		and near(r.chosen_ms, r.split_kv_ms, 0.02)
end)
many_queries = tiling{batch=1, n={16384, 65536}}(
	function(r) return r.heads == 16 or r.n == 65536 end)
takes_wide = all(many_queries, function(r)
	return near(r.chosen_ms, r.multi_warpgroup_ms, 0.02)
		and r.multi_warpgroup_ms < r.m64_ms
		and r.multi_warpgroup_ms < r.split_kv_ms
end)
head_of_128 = tiling{heads=1, batch=1, n=16384, d=128}
