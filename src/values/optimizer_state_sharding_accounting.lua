state_at = function(strategy, moment)
	return h200.optimizer_state_sharding_accounting{size="xl", precision="bf16",
		strategy=strategy, sums="comm", moment=moment}
end

state_met = max(map(ok_of(h200.optimizer_state_sharding_accounting,
	{moment="before"}), function(r)
		return abs(r.peak_MiB/r.derived_MiB - 1)
	end))

h200_times = ok_of(h200.optimizer_state_sharding_accounting_times)

state_time = function(strategy, size)
	return h200_times{size=size or "xl", precision="bf16", strategy=strategy,
		sums="comm"}
end

state_faster = all(h200_times{strategy="zero1"}, function(r)
	return r.period_ms < h200_times{strategy="sharded", size=r.size,
		precision=r.precision}.period_ms
end)

state_more = function(column)                -- by the broadcasts of xl
	return state_time("sharded")[column] - state_time("ddp")[column]
end

state_broadcasts = state_more("period_ms")/state_more("alone_ms")

state_zero = h200_times{strategy="zero1", sums="comm"}

state_blocked = max(map(state_zero, function(r)
	return r.blocked_ms/r.period_ms
end))

state_forward = max(map(state_zero, function(r)
	return r.fwd_ms/state_time("single", r.size).fwd_ms
end))

-- of the step of xl: what no pass and no update of half can be, and blocked
state_share_least = 1 - (state_time("ddp").fwd_ms + state_time("ddp").bwd_ms
	+ state_time("ddp").opt_ms/2)/state_time("sharded").period_ms

state_share_most = state_time("sharded").blocked_ms
	/state_time("sharded").period_ms

sent_of = function(r)                        -- MB
	return r.all_reduce_MB + r.reduce_scatter_MB + r.exchange_MB
		+ r.all_gather_MB + r.broadcast_MB
end

state_sent = function(strategy) return sent_of(state_time(strategy)) end

state_counted = all(h200_times(function(r)
	return r.strategy ~= "single"
end), function(r) return near(sent_of(r), r.sent_derived_MB, 0.02) end)
