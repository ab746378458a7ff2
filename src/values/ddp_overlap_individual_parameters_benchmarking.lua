h200_over = h200.ddp_overlap_individual_parameters_benchmarking
over_at = by(h200_over{precision="bf16"}, "size, kind")
over_long = by(h200_over{size="xl", precision="fp32"}, "kind")
over_rows = h200_over{status="ok", precision="bf16", kind="overlap"}
-- of the time in which collectives run, the part under the backward pass
hidden = function(wait_ms, comm_ms) return max(0, 1 - wait_ms/comm_ms) end
hidden_of = of("hidden(wait_ms, comm_ms)")
hidden_least = min(over_rows, hidden_of)
gain_most = max(over_rows, "overlap")
over_shortest = all(over_rows, "step_ms < over_at(size, 'naive').step_ms \z
	and step_ms < over_at(size, 'flat').step_ms")
-- of a timeline: us of collectives before the backward pass ends, and of all
ddp_spans = ddp_overlap_individual_parameters_benchmarking_timeline
over_span = function(kind)
	local sent = ddp_spans{kind=kind, queue="communication"}
	local last = max(ddp_spans{kind=kind, class="backward"}.end_us)
	return {ends=last, total=sum(sent, "end_us - start_us"), inside=sum(sent,
		"max(0, min(end_us, last) - start_us)", {last=last})}
end
over_inside = function(kind)
	return over_span(kind).inside/over_span(kind).total
end
over_first = function(kind)
	return min(ddp_spans{kind=kind, queue="communication"}.start_us)
end
over_size = each(ddp_spans)[1].size
over_stamps = function(kind)
	local row = each(ddp_spans{kind=kind})[1]
	return row.recorded_ms/row.step_ms - 1
end
