instep = on("h100").flash_benchmarking_model{status="ok"}
in_tiles = of("instep{size=size, context=context, precision=precision, \z
	attention='flash'}")
-- a step with naive attention over one with FlashAttention
saves = of("step_ms/in_tiles(it).step_ms")
in_naive = instep{attention="naive"}
least_saved = all(in_naive, "saves(it) >= saves(in_naive{size='2.7B', \z
	precision='fp32', context=512})")
