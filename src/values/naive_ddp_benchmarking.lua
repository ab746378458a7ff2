naive_row = function(size, precision)
	return h200.naive_ddp_benchmarking{size=size, precision=precision}
end

naive_share = function(size, precision)
	local r = naive_row(size, precision)
	return r.wait_ms/r.step_ms
end

-- T_1 and the isolated collectives, against the step
naive_off = max(map(ok_of(h200.naive_ddp_benchmarking), function(r)
	return abs((r.single_ms + r.alone_ms)/r.step_ms - 1)
end))

naive_longer = max(map(ok_of(h200.naive_ddp_benchmarking), function(r)
	return r.wait_ms/r.alone_ms - 1
end))

-- ms of the sums of xl, with half of the bytes
exercise_naive = (naive_row("xl", "bf16").alone_ms + 435*0.015)/2
