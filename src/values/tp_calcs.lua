-- tp_calcs.lua: bounds of tensor parallelism
tp_flips = all(tp_calcs, function(r)
	return r.send_ms <= r.compute_ms and r.next_send_ms > r.next_compute_ms
end)
tp_exact = all(tp_calcs_schedule(divided), counted)
tp_more = all(tp_calcs_schedule, more)
tp_forward = tp_calcs{pass="forward"}
fast_tp = map(tp_forward(function(r) return r.hardware ~= "H100 NIC" end),
	function(r) return r.N end)
