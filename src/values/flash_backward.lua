-- FLOPs of five matmuls over those of the tensor cores in the clocks of a pass
backward_part = function(variant, n, heads)
	return tensor_part(5, heads or 16, n or 16384, sum(counter_rows{
		variant=variant, op="attention backward"}, "launch_us*1e3*SM_GHz"))
end
-- 16 heads of 16384 in the run of the grid
second_run = on("h100").flash_benchmarking_grid{causal="yes", batch=1, heads=16,
	n=16384, d=128, variant="warp_specialized"}
-- backward pass of one head of 1024 queries, replayed, in ms
short_bwd = function(variant) return on("h100").flash_benchmarking{n=1024, d=128,
	dtype="bf16", heads=1, variant=variant}.bwd_replay_ms end
