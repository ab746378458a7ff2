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
-- ms that the optimizer waits by the two cases of the model
bucket_wait = function(wire, mb)
	local row = h200_at(wire, mb)
	local n, pass = row.buckets, row.single_bwd_ms
	local bytes, call = row.gradient_MB/row.w_GBps, row.o_us*1e-3
	return bytes + n*call < pass and bytes/n + call
		or pass/n + bytes + n*call - pass
end
bucket_lacks = {}                            -- of the measured waits
for _, wire in ipairs({"fp32", "bf16"}) do
	for _, mb in ipairs({1, 5, 10, 50, 100, 500, 1000}) do
		table.insert(bucket_lacks, h200_at(wire, mb).wait_ms
			- bucket_wait(wire, mb))
	end
end
bucket_waits = function(mb)
	return ratio(bucket_wait("fp32", mb), 2) .. ", " .. ratio(h200_at("fp32",
		mb).wait_ms, 2)
end
-- what a step takes longer than one rank's, without the wait
bucket_stretch = function(wire, mb)
	local row = h200_at(wire, mb)
	return row.step_ms - row.single_ms - row.wait_ms
end
spread_of = function(rows, column) return max(rows[column])
	- min(rows[column]) end
exchanged = argmin(h200_bucket("bf16", "optimizer"), "step_ms")
h200_slow = h200.ddp_bucketed_benchmarking_transports{transport="ring"}
ctas_rows = h200.ddp_bucketed_benchmarking_ctas{transport="symmetric"}
ctas_row = by(ctas_rows, "wire, ctas, spare_sms")
ctas_from = function(wire, least)
	return ctas_rows{wire=wire}("ctas >= least", {least=least})
end
