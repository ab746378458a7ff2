fsdp_gather = (2/2/450e9)/(2*2048/5e14)  -- of the forward pass
fsdp_row = function(size, strategy, prefetch)
	return h200.fsdp_accounting{size=size, precision="bf16", strategy=strategy,
		prefetch=prefetch or 0, sums="comm"}
end
fsdp_saved = function(size, prefetch, column) return fsdp_row(size, "ddp")[column]
	- fsdp_row(size, "fsdp", prefetch)[column] end
fsdp_state = function(strategy, prefetch)
	local r = fsdp_row("xl", strategy, prefetch)
	return r.parameter_MiB + r.gradient_MiB + r.optimizer_MiB
end
fsdp_kept = fsdp_state("fsdp", 1)/fsdp_state("ddp")
h200_fsdp = ok_of(h200.fsdp_accounting)
fsdp_met = max(h200_fsdp, "abs(peak_MiB/derived_MiB - 1)")
-- no other strategy has the memory for 10B
fsdp_alike = all(h200_fsdp, "size == '10B' or near(loss, h200_fsdp{size=size, \z
	precision=precision, strategy='zero1', sums=sums}.loss, 1e-3)")
fsdp_less = all(h200_fsdp("strategy ~= 'ddp' and size ~= '10B'"), "peak_MiB \z
	< like(h200_fsdp{strategy='ddp'}, 'size', 'precision').peak_MiB")
fsdp_spans = fsdp_accounting_timeline
-- ms in which the compute queue waits before units, and for all; how many units
-- wait longer than a twentieth of the average unit takes
fsdp_waits = function(prefetch)
	local mine = fsdp_spans{prefetch=prefetch, sums="comm", queue="compute"}
	local units = map(mine{class={"forward", "backward"}}, "end_us - start_us")
	-- after both passes it waits for the rest of the sums, and for weights
	local waits = map(mine{class="wait"}("not name:find('^rest') \z
		and not name:find('^weights')"), "end_us - start_us")
	return {ms=sum(waits)*1e-3, share=sum(waits)/(sum(waits) + sum(units)),
		late=count(waits, "it > limit", {limit=sum(units)/#units/20})}
end
fsdp_longer = fsdp_row("xl", "fsdp", 0).fwd_ms/fsdp_row("xl", "ddp").fwd_ms - 1
-- GB/s of a step's collectives
fsdp_rate = (fsdp_row("xl", "fsdp", 0).reduce_scatter_MB
	+ fsdp_row("xl", "fsdp", 0).all_gather_MB)/fsdp_row("xl", "fsdp", 0).alone_ms
fsdp_forward = function(size) return fsdp_row(size, "fsdp", 1).fwd_ms
	/fsdp_row(size, "ddp").fwd_ms end
fsdp_unsure = function(size)
	local one, two = fsdp_row(size, "fsdp", 1), fsdp_row(size, "fsdp", 2)
	return abs(two.period_ms - one.period_ms) < two.step_sd_ms
end
