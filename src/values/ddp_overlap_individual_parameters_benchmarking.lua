h200_over = h200.ddp_overlap_individual_parameters_benchmarking
over_at = by(h200_over{precision="bf16"}, "size, kind")
over_long = by(h200_over{size="xl", precision="fp32"}, "kind")
-- of the time in which collectives run, the part under the backward pass
hidden = function(wait_ms, comm_ms) return max(0, 1 - wait_ms/comm_ms) end
hidden_of = function(r) return hidden(r.wait_ms, r.comm_ms) end
hidden_least = over_all(ok_of(h200_over, {precision="bf16", kind="overlap"}),
	hidden_of)
gain_least, gain_most = over_all(ok_of(h200_over,
	{precision="bf16", kind="overlap"}), "overlap")
over_shortest = all(ok_of(h200_over, {precision="bf16", kind="overlap"}),
	"step_ms < over_at(size, 'naive').step_ms and step_ms < over_at(size, \z
	'flat').step_ms")
-- of a timeline: us of collectives before the backward pass ends, and of all
ddp_spans = ddp_overlap_individual_parameters_benchmarking_timeline
over_span = function(kind)
	local mine = ddp_spans{kind=kind}
	local ends = max(mine{class="backward"}.end_us)
	local inside, total = 0, 0
	for _, r in ipairs(each(mine{queue="communication"})) do
		total = total + r.end_us - r.start_us
		inside = inside + max(0, min(r.end_us, ends) - r.start_us)
	end
	return {inside=inside, total=total, ends=ends}
end
over_inside = function(kind)
	local s = over_span(kind)
	return s.inside/s.total
end
over_first = function(kind)
	return min(ddp_spans{kind=kind, queue="communication"}.start_us)
end
over_size = each(ddp_spans)[1].size
