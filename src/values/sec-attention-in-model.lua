instep = on("h100").flash_benchmarking_model{status="ok"}
in_naive = instep{attention="naive"}
in_tiles = of("like(instep{attention='flash'}, 'size', 'context', 'precision')")
-- a step with naive attention over one with FlashAttention
saves = of("step_ms/in_tiles(it).step_ms")
