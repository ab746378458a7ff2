fsdp_gather = (2/2/450e9)/(2*2048/5e14)      -- of the forward pass

fsdp_row = function(size, strategy, prefetch)
	return h200.fsdp_accounting{size=size, precision="bf16", strategy=strategy,
		prefetch=prefetch or 0, sums="comm"}
end

fsdp_saved = function(size, prefetch, column)
	return fsdp_row(size, "ddp")[column]
		- fsdp_row(size, "fsdp", prefetch)[column]
end

fsdp_state = function(strategy, prefetch)
	local r = fsdp_row("xl", strategy, prefetch)
	return r.parameter_MiB + r.gradient_MiB + r.optimizer_MiB
end

fsdp_kept = fsdp_state("fsdp", 1)/fsdp_state("ddp")

h200_fsdp = ok_of(h200.fsdp_accounting)

fsdp_met = max(map(h200_fsdp, function(r)
	return abs(r.peak_MiB/r.derived_MiB - 1)
end))

-- no other strategy has the memory for 10B
fsdp_alike = all(h200_fsdp, function(r)
	return r.size == "10B" or near(r.loss, h200_fsdp{size=r.size,
		precision=r.precision, strategy="zero1", sums=r.sums}.loss, 1e-3)
end)

fsdp_less = all(h200_fsdp{strategy="ddp"}, function(r)
	return all(h200_fsdp{size=r.size, precision=r.precision}, function(q)
		return q.strategy == "ddp" or q.peak_MiB < r.peak_MiB
	end)
end)

fsdp_spans = fsdp_accounting_timeline
-- ms in which the compute queue waits before units, and for all; how many units
-- wait longer than a twentieth of the average unit takes
fsdp_waits = function(prefetch)
	local mine = fsdp_spans{prefetch=prefetch, sums="comm", queue="compute"}
	local waits, work, units, late = 0, 0, 0, 0
	for _, r in ipairs(each(mine)) do
		if r.class == "forward" or r.class == "backward" then
			work = work + r.end_us - r.start_us
			units = units + 1
		end
	end
	for _, r in ipairs(each(mine{class="wait"})) do
		local us = r.end_us - r.start_us
		-- after both passes it waits for the rest of the sums, and for weights
		if not r.name:find("^rest") and not r.name:find("^weights") then
			waits = waits + us
			if us > work/units/20 then late = late + 1 end
		end
	end
	return {ms=waits*1e-3, late=late, share=waits/(waits + work)}
end

fsdp_longer = fsdp_row("xl", "fsdp", 0).fwd_ms/fsdp_row("xl", "ddp").fwd_ms - 1

-- GB/s of a step's collectives
fsdp_rate = (fsdp_row("xl", "fsdp", 0).reduce_scatter_MB
	+ fsdp_row("xl", "fsdp", 0).all_gather_MB)/fsdp_row("xl", "fsdp", 0).alone_ms

fsdp_forward = function(size)
	return fsdp_row(size, "fsdp", 1).fwd_ms/fsdp_row(size, "ddp").fwd_ms
end

fsdp_unsure = function(size)
	local one, two = fsdp_row(size, "fsdp", 1), fsdp_row(size, "fsdp", 2)
	return abs(two.period_ms - one.period_ms) < two.step_sd_ms
end

fsdp_over = function(size)
	return fsdp_row(size, "fsdp", 1).period_ms/fsdp_row(size, "ddp").period_ms
end
