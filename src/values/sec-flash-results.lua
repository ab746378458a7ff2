-- over the bound: one head; 16 heads split by keys
split_over = on("h100").flash_benchmarking_tiles{heads=16, batch=1, n=16384,
	d=64}.split_kv_ms/flash_bound({heads=16, n=16384, d=64, dtype="bf16"}, "fwd")
