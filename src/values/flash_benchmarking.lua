ours64 = function(n) return flash_alone("warp_specialized", n, 64) end
naive64 = function(n) return flash_alone("naive", n, 64) end
-- bounds of one head of D = 64 in us; both passes of naive attention: 11 n^2 w
fwd64_us = flash_matmul_ms(ours64(16384), "fwd")*1e3
naive_bound_ms = 11*65536^2*2/flash_peak("copy")/1e6
predicted_gain = naive_bound_ms/(flash_bound(ours64(65536), "fwd")
	+ flash_bound(ours64(65536), "bwd"))
-- forward, backward and both in ms, for the table of the answer
both_cells = of("{ratio(fwd_ms), ratio(bwd_ms), ratio(both_ms)}")
-- from half of the length
peak_growth = function(variant, n, dtype) return flash_alone(variant, n, 64,
	dtype).peak_MiB/flash_alone(variant, n/2, 64, dtype).peak_MiB end
naive_cells = function(n, dtype)
	return both_cells(flash_alone("naive", n, 64, dtype))
end
flash_cells = function(n, dtype)
	local variant = dtype == "bf16" and "warp_specialized" or "split_fp16"
	return both_cells(flash_alone(variant, n, 64, dtype))
end
replayed_us = of("(fwd_replay_ms + bwd_replay_ms)*1e3")
naive_longest = all(flash_grid{n=65536, d=64}, "variant == 'naive' \z
	or 5*replayed_us(it) < replayed_us(flash_alone('naive', 65536, 64, dtype))")
gain64 = naive64(65536).both_ms/ours64(65536).both_ms
gain32 = flash_alone("naive", 65536, 64, "fp32").both_ms/flash_alone("split_fp16",
	65536, 64, "fp32").both_ms
memory_gain = naive64(65536).peak_MiB/ours64(65536).peak_MiB
-- does the peak grow as n, and that of naive attention at the end as its square?
flash_doubles = function(variant, dtype)
	return all({8, 9, 10, 11, 12, 13, 14, 15, 16}, "near(peak_growth(variant, \z
		2^it, dtype), 2, 0.02)", {variant=variant, dtype=dtype})
end
memory_shapes = flash_doubles("warp_specialized", "bf16")
	and flash_doubles("split_fp16", "fp32") and all({"bf16", "fp32"},
	"near(peak_growth('naive', 65536, it), 4, 0.02)")
-- does each doubling from 1024 on raise the rate?
rates_rise = function(d, pass)
	return increasing({10, 11, 12, 13, 14, 15, 16}, "flash_rate(flash_alone( \z
		'warp_specialized', 2^it, d), pass)", {d=d, pass=pass})
end
all_rise = function(pass) return all({16, 32, 64, 128}, "rates_rise(it, pass)",
	{pass=pass}) end
-- the longest of `tiles` tiles of 1, 2, ... units of work, over an SM's part
longest_tile = function(tiles) return tiles/(tiles*(tiles + 1)/2/132) end
