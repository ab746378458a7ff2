h200_buckets = h200.ddp_bucketed_benchmarking

h200_bucket = function(wire, sums)
	return ok_of(h200_buckets, {wire=wire, sums=sums or "comm"})
end

h200_at = function(wire, mb, sums)
	return h200_buckets{wire=wire, sums=sums or "comm", bucket_mb=mb}
end

pm_of = function(wire, mb)
	return pm(h200_at(wire, mb).step_ms, h200_at(wire, mb).step_sd_ms)
end

-- o (s), w (bytes/s) and s (bytes), medians over the jobs
xl_link = {o=median(h200_bucket("fp32").o_us)*1e-6,
	w=median(h200_bucket("fp32").w_GBps)*1e9,
	s=max(h200_bucket("fp32").gradient_MB)*1e6}

bucket_n = function(link) return math.sqrt(link.s/(link.w*link.o)) end

bucket_b = function(link) return math.sqrt(link.s*link.w*link.o)*1e-6 end

bucket_T = function(link) return 2e3*math.sqrt(link.s*link.o/link.w) end

buckets_agree = all(h200_bucket("fp32"), function(r)
	return r.formed == r.buckets and r.buckets == buckets_of("xl", r.bucket_mb, 4)
end) and all(h200_bucket("bf16"), function(r)
	return r.buckets == buckets_of("xl", r.bucket_mb, 2)
end)

-- ms between the longest and the shortest step, and the least deviation
bucket_spread = function(sizes, wire)
	local steps, deviations = {}, {}
	for i, mb in ipairs(sizes) do
		steps[i] = h200_at(wire, mb).step_ms
		deviations[i] = h200_at(wire, mb).step_sd_ms
	end
	return max(steps) - min(steps), min(deviations)
end

alike_spread = bucket_spread({1, 5, 10}, "fp32")

large_alike = function(wire)
	local spread, sd = bucket_spread({50, 100, 500, 1000}, wire)
	return spread < sd
end

all_alike = function(wire)                   -- within the largest deviation
	local steps = h200_bucket(wire).step_ms
	return max(steps) - min(steps) < max(h200_bucket(wire).step_sd_ms)
end

bucket_middle = function(wire)
	local at = function(mb) return h200_at(wire, mb).step_ms end
	return max {at(50), at(100), at(500)} < min {at(1), at(5), at(10)}
end

waits_longest = function(wire)
	return all(h200_bucket(wire), function(r)
		return r.wait_ms <= h200_at(wire, 1000).wait_ms
	end)
end

stretches_less = h200_at("fp32", 1000).bwd_ms < 0.97*h200_at("fp32", 100).bwd_ms

exchanged = argmin(h200_bucket("bf16", "optimizer"), "step_ms")

simulated_least = over_all(ok_of(h200_buckets), function(r)
	return r.simulated_ms/r.step_ms - 1
end)

series_flatter = function()                  -- than simulated
	for _, wire in ipairs({"fp32", "bf16"}) do
		for _, sums in ipairs({"comm", "optimizer"}) do
			local rows = h200_bucket(wire, sums)
			if max(rows.step_ms) - min(rows.step_ms)
				>= max(rows.simulated_ms) - min(rows.simulated_ms) then
				return false
			end
		end
	end
	return true
end

small_hides_least = function(wire)
	local rows = ok_of(h200.ddp_bucketed_benchmarking_sizes,
		{precision="bf16", wire=wire})
	return all(rows, function(r)
		return r.overlap >= rows{size="small"}.overlap
	end)
end

h200_slow = h200.ddp_bucketed_benchmarking_transports{transport="ring"}

slow_small_first = max(h200_slow(function(r)
	return r.bucket_mb <= 10
end).step_ms) < min(h200_slow(function(r) return r.bucket_mb > 10 end).step_ms)

ctas_row = function(wire, ctas, spare)
	return h200.ddp_bucketed_benchmarking_ctas{wire=wire, transport="symmetric",
		ctas=ctas, spare_sms=spare}
end
