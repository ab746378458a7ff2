tiling = on("h100").flash_benchmarking_tiles{status="ok"}
over_best = function(r) return r.chosen_ms/min(r.m64_ms, r.multi_warpgroup_ms,
	r.split_kv_ms) end
small_heads = tiling{d={16, 32, 64}, heads=1, batch=1, n={1024, 4096, 16384}}
many_queries = tiling{batch=1, n={16384, 65536}}("heads == 16 or n == 65536")
head_of_128 = tiling{heads=1, batch=1, n=16384, d=128}
