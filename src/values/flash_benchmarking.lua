ours64 = function(n) return flash_alone("warp_specialized", n, 64) end
naive64 = function(n) return flash_alone("naive", n, 64) end

-- bounds of one head of D = 64 in us; both passes of naive attention: 11 n^2 w
fwd64_us = flash_matmul_ms(ours64(16384), "fwd")*1e3
bwd64_us = flash_matmul_ms(ours64(16384), "bwd")*1e3
naive_bound_ms = 11*65536^2*2/flash_peak("copy")/1e6
predicted_gain = naive_bound_ms/(flash_bound(ours64(65536), "fwd")
	+ flash_bound(ours64(65536), "bwd"))

-- forward, backward and both in ms, for the table of the answer
both_cells = function(r)
	return {ratio(r.fwd_ms, 3), ratio(r.bwd_ms, 3), ratio(r.both_ms, 3)}
end
naive_cells = function(n, dtype)
	return both_cells(flash_alone("naive", n, 64, dtype))
end
flash_cells = function(n, dtype)
	local variant = dtype == "bf16" and "warp_specialized" or "split_fp16"
	return both_cells(flash_alone(variant, n, 64, dtype))
end

replayed_us = function(r) return (r.fwd_replay_ms + r.bwd_replay_ms)*1e3 end
naive_longest = all(flash_grid{n=65536, d=64}, function(r)
	return r.variant == "naive" or 5*replayed_us(r)
		< replayed_us(flash_alone("naive", 65536, 64, r.dtype))
end)
gain64 = naive64(65536).both_ms/ours64(65536).both_ms
gain32 = flash_alone("naive", 65536, 64, "fp32").both_ms
	/flash_alone("split_fp16", 65536, 64, "fp32").both_ms
host_bound = naive64(128).both_ms*1e3 > 2*replayed_us(naive64(128))
	and ours64(128).both_ms*1e3 < 1.2*replayed_us(ours64(128))
memory_gain = naive64(65536).peak_MiB/ours64(65536).peak_MiB

-- does the peak grow as n, and that of naive attention at the end as its square?
flash_doubles = function(variant, dtype)
	local doubles = true
	for k = 7, 15 do
		local short = flash_alone(variant, 2^k, 64, dtype)
		local long = flash_alone(variant, 2^(k + 1), 64, dtype)
		doubles = doubles and near(long.peak_MiB/short.peak_MiB, 2, 0.02)
	end
	return doubles
end
naive_quadruples = function(dtype)
	return near(flash_alone("naive", 65536, 64, dtype).peak_MiB
		/flash_alone("naive", 32768, 64, dtype).peak_MiB, 4, 0.02)
end
memory_shapes = flash_doubles("warp_specialized", "bf16")
	and flash_doubles("split_fp16", "fp32")
	and naive_quadruples("bf16") and naive_quadruples("fp32")

-- does each doubling from 1024 on raise the rate?
rates_rise = function(d, pass)
	local last, rises = 0, true
	for k = 10, 16 do
		local rate = flash_rate(flash_alone("warp_specialized", 2^k, d), pass)
		rises, last = rises and rate > last, rate
	end
	return rises
end
all_rise = function(pass)
	return rates_rise(16, pass) and rates_rise(32, pass)
		and rates_rise(64, pass) and rates_rise(128, pass)
end
-- the longest of `tiles` tiles of 1, 2, ... units of work, over an SM's part
longest_tile = function(tiles) return tiles/(tiles*(tiles + 1)/2/132) end
