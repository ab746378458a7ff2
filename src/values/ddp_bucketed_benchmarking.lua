h200_buckets = h200.ddp_bucketed_benchmarking
h200_bucket = function(wire, sums) return h200_buckets{status="ok", wire=wire,
	sums=sums or "comm"} end
h200_at = function(wire, mb, sums) return h200_buckets{wire=wire, sums=sums
	or "comm", bucket_mb=mb} end
pm_of = function(wire, mb) return pm(h200_at(wire, mb), "step") end
-- o (s), w (bytes/s) and s (bytes), medians over the jobs
xl_link = {o=median(h200_bucket("fp32").o_us)*1e-6,
	w=median(h200_bucket("fp32").w_GBps)*1e9,
	s=max(h200_bucket("fp32").gradient_MB)*1e6}
bucket_n = of("sqrt(s/(w*o))")
bucket_b = of("sqrt(s*w*o)*1e-6")
bucket_T = of("2e3*sqrt(s*o/w)")
buckets_agree = all(h200_bucket("fp32"), "formed == buckets \z
	and buckets == buckets_of('xl', bucket_mb, 4)")
	and all(h200_bucket("bf16"), "buckets == buckets_of('xl', bucket_mb, 2)")
spread_of = function(rows, column) return max(rows[column])
	- min(rows[column]) end
-- ms between the longest and the shortest step, and the least deviation
bucket_spread = function(sizes, wire)
	local rows = h200_at(wire, sizes)
	return spread_of(rows, "step_ms"), min(rows.step_sd_ms)
end
large_alike = function(wire)
	local spread, sd = bucket_spread({50, 100, 500, 1000}, wire)
	return spread < sd
end
all_alike = function(wire)                   -- within the largest deviation
	local rows = h200_bucket(wire)
	return spread_of(rows, "step_ms") < max(rows.step_sd_ms)
end
bucket_middle = function(wire) return max(h200_at(wire, {50, 100, 500}).step_ms)
	< min(h200_at(wire, {1, 5, 10}).step_ms) end
waits_longest = function(wire) return max(h200_bucket(wire).wait_ms)
	== h200_at(wire, 1000).wait_ms end
exchanged = argmin(h200_bucket("bf16", "optimizer"), "step_ms")
series_flatter = function()                  -- than simulated
	return all({"fp32", "bf16"}, "all({'comm', 'optimizer'}, \z
		'spread_of(h200_bucket(wire, it), [[step_ms]]) \z
		< spread_of(h200_bucket(wire, it), [[simulated_ms]])', {wire=it})")
end
small_hides_least = function(wire)
	local rows = h200.ddp_bucketed_benchmarking_sizes{status="ok",
		precision="bf16", wire=wire}
	return min(rows.overlap) == rows{size="small"}.overlap
end
h200_slow = h200.ddp_bucketed_benchmarking_transports{transport="ring"}
ctas_row = by(h200.ddp_bucketed_benchmarking_ctas{transport="symmetric"},
	"wire, ctas, spare_sms")
