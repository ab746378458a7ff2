fsdp_gather = (2/2/450e9)/(2*2048/5e14)  -- of the forward pass
fsdp_row = function(size, strategy, prefetch)
	return h200.fsdp_accounting{size=size, precision="bf16", strategy=strategy,
		prefetch=prefetch or 0, sums="comm"}
end
fsdp_saved = function(size, prefetch, column) return fsdp_row(size, "ddp")[column]
	- fsdp_row(size, "fsdp", prefetch)[column] end
-- xl with one unit ahead: what is not saved of a half, and four slots of a block
fsdp_slots = fsdp_row("xl", "ddp").active_MiB/2 - fsdp_saved("xl", 1, "peak_MiB")
fsdp_slots_derived = 4*2*(4*xl_C^2 + 3*xl_C*xl_F)/2^20
h200_fsdp = ok_of(h200.fsdp_accounting)
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
fsdp_rate = h200.distributed_communication_single_node_collectives{ranks=2,
	collective="all-gather", device="cuda", transport="nccl",
	bytes=1e9}.busbw_GBps
fsdp_gathers = params("xl")*1e-6/fsdp_rate/fsdp_row("xl", "ddp").fwd_ms
fsdp_forward = function(size) return fsdp_row(size, "fsdp", 1).fwd_ms
	/fsdp_row(size, "ddp").fwd_ms end
