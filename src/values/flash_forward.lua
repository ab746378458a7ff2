flash_rows = on("h100").flash_benchmarking_peers{status="ok"}
flash_grid = on("h100").flash_benchmarking{status="ok"}
flash_peak = by(on("h100").peaks, "quantity", "value")
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
flash_matmul_ms = function(r, pass)
	local fp32 = r.dtype == "fp32"
	return flash_GFLOP(r, pass)*(fp32 and 3 or 1)/flash_peak(fp32 and "fp16"
		or "bf16")
end
flash_exp_ms = of("heads*n*(it.n + 1)/2/(132*16*1.98e6)")
flash_bytes_ms = function(r, pass) return r.heads*r.n*r.d*(r.dtype == "fp32" and 4
	or 2)*(pass == "fwd" and 4 or 8)/flash_peak("copy")/1e6 end
flash_bound = function(r, pass) return max(flash_matmul_ms(r, pass),
	flash_exp_ms(r), flash_bytes_ms(r, pass)) end
flash_fraction = function(r, pass) return flash_bound(r, pass)
	/r[pass .. "_ms"] end
flash_label = function(variant)
	return ({simt="v1 simt", mma_sync="v2 mma_sync", wgmma="v3 wgmma",
		warp_specialized="v4 warp_specialized",
		["warp_specialized-atomic"]="v4 warp_specialized, atomic",
		naive="naive"})[variant] or (variant:gsub("^pytorch%-", ""))
end
flash_rate = function(r, pass) return flash_GFLOP(r, pass)/r[pass .. "_ms"] end
flash_ms = function(r, pass) return r[pass .. "_ms"] end
flash_digits = function(x) return fixed(x, 0) end
-- TFLOP/s by calls: one head of 8192 positions, 16 heads of 16384; D = 128
one_head_rate = function(variant, pass, dtype)
	return fixed(flash_rate(flash_alone(variant, 8192, 128, dtype), pass),
		variant == "simt" and 1 or 0)
end
heads_rate = function(variant, pass)
	return fixed(flash_rate(flash_16(variant), pass), 0)
end
-- the same row timed by graph replays
flash_replayed = of("{heads=heads, n=n, d=d, dtype=dtype, fwd_ms=fwd_replay_ms, \z
	bwd_ms=bwd_replay_ms}")
flash_both_ways = function(of_row, r, pass, print)
	local same, list = "causal == 'yes' and batch == 1 and heads == r.heads \z
		and n == r.n and d == r.d and (not variants or variants[variant])", {}
	local found = pick(on("h100").flash_benchmarking_grid, same, {r=r, variants={
		warp_specialized=true, ["warp_specialized-atomic"]=pass == "fwd"}})
	table.insert(found, r)
	if pass == "fwd" then                                -- one forward kernel
		table.insert(found,
			flash_on("warp_specialized-atomic", r.heads, r.n, r.d))
		for _, t in ipairs(pick(on("h100").flash_benchmarking_tiles, same,
			{r=r, variants=false})) do
			table.insert(list, of_row({heads=t.heads, n=t.n, d=t.d,
				dtype=t.dtype, fwd_ms=t.chosen_ms}, pass))
		end
	end
	for _, t in ipairs(found) do
		table.insert(list, of_row(t, pass))
		table.insert(list, of_row(flash_replayed(t), pass))
	end
	return range(print, list)
end
-- counters of the kernels
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
-- v2 to v4 that are not faster than the one before, of 16 heads
flash_steps = increasing({"warp_specialized", "wgmma", "mma_sync"},
	"flash_16(it).fwd_ms")
one_head_steps = increasing({"simt", "mma_sync", "wgmma", "warp_specialized"},
	"flash_rate(flash_alone(it, 8192, 128), 'fwd')")
