tiling = on("h100").flash_benchmarking_tiles{status="ok"}
over_best = of("chosen_ms/min(m64_ms, multi_warpgroup_ms, split_kv_ms)")
