flash_rows = on("h100").flash_benchmarking_peers{status="ok"}
flash_grid = on("h100").flash_benchmarking{status="ok"}
-- a kernel on a shape that several were timed on; 16 heads of 128; one head
flash_on = function(variant, heads, n, d, dtype) return flash_rows{
	variant=variant, heads=heads, n=n, d=d, dtype=dtype or "bf16"} end
flash_16 = function(variant) return flash_on(variant, 16, 16384, 128) end
flash_alone = function(variant, n, d, dtype) return flash_grid{variant=variant,
	n=n, d=d, dtype=dtype or "bf16"} end
flash_lead = flash_16("warp_specialized")
flash_row = flash_alone("warp_specialized", 16384, 128)
-- GFLOP of a pass, of the pairs that a causal mask leaves
flash_GFLOP = function(r, pass) return r.heads*r.n*(r.n + 1)/2*r.d*(pass == "fwd"
	and 4 or 10)/1e9 end
-- ms at least: matmuls at the measured peak, in fp32 three of fp16 for each;
-- exp2, 16 a clock and SM; Q, K, V, O (and gradients) moved once
flash_matmul_ms = function(r, pass) return flash_GFLOP(r, pass)*(r.dtype == "fp32"
	and 3/rate("fp16") or 1/rate("bf16")) end
flash_exp_ms = of("heads*n*(it.n + 1)/2/(132*16*1.98e6)")
flash_bytes_ms = function(r, pass) return r.heads*r.n*r.d*(r.dtype == "fp32" and 4
	or 2)*(pass == "fwd" and 4 or 8)/rate("copy")/1e6 end
flash_bound = function(r, pass) return max(flash_matmul_ms(r, pass),
	flash_exp_ms(r), flash_bytes_ms(r, pass)) end
flash_fraction = function(r, pass) return flash_bound(r, pass)
	/r[pass .. "_ms"] end
flash_rate = function(r, pass) return flash_GFLOP(r, pass)/r[pass .. "_ms"] end
-- TFLOP/s by calls: one head of 8192 positions, 16 heads of 16384; D = 128
one_head_rate = function(variant, pass, dtype) return ratio(flash_rate(
	flash_alone(variant, 8192, 128, dtype), pass), 2) end
heads_rate = function(variant, pass) return ratio(flash_rate(flash_16(variant),
	pass), 2) end
-- the same row timed by graph replays; the range over all tables, both ways or
-- one of them
flash_replayed = function(r, pass) return {heads=r.heads, n=r.n, d=r.d,
	dtype=r.dtype, [pass .. "_ms"]=r[pass .. "_replay_ms"]} end
flash_both_ways = function(of_row, r, pass, print, way)
	local same = "batch == 1 and heads == r.heads and n == r.n and d == r.d"
	local with = {r=r, of_row=of_row, pass=pass}
	local names = {"warp_specialized", pass == "fwd" and "warp_specialized-atomic"
		or nil}                              -- which has the same forward kernel
	local rows = pick(flash_rows{variant=names}, same, with) .. pick(
		on("h100").flash_benchmarking_grid{causal="yes", variant=names}, same,
		with)
	local replays = pass ~= "fwd" and rows or rows .. map(pick(
		on("h100").flash_benchmarking_tiles, same, with), "{heads=heads, n=n, \z
		d=d, dtype=dtype, fwd_replay_ms=chosen_ms}")
	local by_calls = map(rows, "of_row(it, pass)", with)
	local by_replays = map(replays, "of_row(flash_replayed(it, pass), pass)",
		with)
	return range(print, way == "calls" and by_calls or way == "replays"
		and by_replays or by_calls .. by_replays)
end
-- counters of the kernels
flash_version = {simt="v1 ", mma_sync="v2 ", wgmma="v3 ", split_fp16="v5 "}
v1_fwd, v2_fwd = counters_of("attention forward", "simt"),
	counters_of("attention forward", "mma_sync")
v3_fwd, v4_fwd = counters_of("attention forward", "wgmma"),
	counters_of("attention forward", "warp_specialized")
v4_bwd = counters_of("attention backward", "warp_specialized")
atomic_bwd = counters_of("attention backward", "warp_specialized-atomic")
-- FLOPs of so many causal matmuls, D = 128, over those of the tensor cores in so
-- many clocks
tensor_part = function(matmuls, heads, n, clocks) return matmuls*heads*n*(n + 1)
	/2*2*128/(clocks*132*4096) end
-- that of a launch; with 16 heads of 16384
launched_part = function(r, matmuls, heads, n) return tensor_part(matmuls, heads,
	n, r.launch_us*1e3*r.SM_GHz) end
flop_part = function(r, matmuls) return launched_part(r, matmuls, 16, 16384) end
v4_tiles = {constant("src/ops/cuda/attention_warp_specialized.cu",
	"TileConfig<T, 128, (%d+), (%d+), (%d+), PINGPONG>")}
flash_steps = increasing({"warp_specialized", "wgmma", "mma_sync"},
	"flash_16(it).fwd_ms")
