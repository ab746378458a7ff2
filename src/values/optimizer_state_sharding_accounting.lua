state_at = by(h200.optimizer_state_sharding_accounting{size="xl",
	precision="bf16", sums="comm"}, "strategy, moment")
state_large = by(h200.optimizer_state_sharding_accounting{size="2.7B",
	precision="bf16", sums="comm"}, "strategy, moment")
h200_times = ok_of(h200.optimizer_state_sharding_accounting_times)
state_time = function(strategy, size) return h200_times{size=size or "xl",
	precision="bf16", strategy=strategy, sums="comm"} end
-- xl in fp32, under other strategies too
state_long = by(h200.fsdp_accounting{size="xl", precision="fp32", sums="comm",
	prefetch=0}, "strategy")
state_faster = all(h200_times{strategy="zero1"}, "period_ms \z
	< h200_times{strategy='sharded', size=size, precision=precision}.period_ms")
-- by the broadcasts of xl
state_more = function(column) return state_time("sharded")[column]
	- state_time("ddp")[column] end
state_broadcasts = state_more("period_ms")/state_more("alone_ms")
state_zero = h200_times{strategy="zero1", sums="comm"}
state_blocked = function(sums) return max(h200_times{strategy="zero1",
	sums=sums}, "blocked_ms/period_ms") end
state_forward = max(state_zero, "fwd_ms/state_time('single', size).fwd_ms")
sent_of = of("all_reduce_MB + reduce_scatter_MB + exchange_MB + all_gather_MB \z
	+ broadcast_MB")
state_sent = function(strategy) return sent_of(state_time(strategy)) end
state_counted = all(h200_times("strategy ~= 'single'"), "near(sent_of(it), \z
	sent_derived_MB, 0.02)")
state_nodes = by(on("cpu").several_nodes{nodes=2, Gbps=1}, "strategy")
