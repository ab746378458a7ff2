-- rmsnorm_backward.lua: what a ring gains, and the pass of a model's rows
ring_over = function(precision, width)
	local of = rms{impl="ours", precision=precision, width=width}
	return of{variant="ahead"}.bwd_ms/of{variant="packs"}.bwd_ms - 1
end
rings_narrow = {ring_over("fp32", 1024), ring_over("bf16", 1024),
	ring_over("bf16", 2048)}
rings_wide = {ring_over("fp32", 4096), ring_over("fp32", 8192),
	ring_over("bf16", 8192)}
-- bf16 over fp32
norm_back_of = function(column)
	local of = on("h100").kernel_speed{size="2.7B", path="fused",
		op="rmsnorm backward"}
	return of{precision="bf16"}[column]/of{precision="fp32"}[column]
end
