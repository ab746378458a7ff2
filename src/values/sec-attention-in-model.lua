low_errors = on("h100").flash_benchmarking_errors{status="ok", dtype="bf16"}
high_errors = on("h100").flash_benchmarking_errors{status="ok", dtype="fp32"}
worst_error = function(r) return max(r.o/r.peer_o, r.dq/r.peer_dq, r.dk/r.peer_dk,
	r.dv/r.peer_dv) end
instep = on("h100").flash_benchmarking_model{status="ok"}
in_naive = instep{attention="naive"}
in_tiles = of("like(instep{attention='flash'}, 'size', 'context', 'precision')")
-- a step with naive attention over one with FlashAttention
saves = of("step_ms/in_tiles(it).step_ms")
tiled = function(size) return instep{attention="flash", size=size, context=512,
	precision="bf16"} end
