-- data_parallel_calcs.lua: bounds, and schedules that were run with data
divided = function(r) return r.batch == 120 end
counted = function(r)
	return r.flops == r.flops_counted and r.x_nbytes == r.x_counted
		and r.y_nbytes == r.y_counted
end
more = function(r)
	return r.flops_counted >= r.flops and r.x_counted >= r.x_nbytes - 1e-6
		and r.y_counted >= r.y_nbytes - 1e-6
end

dp_flips = all(dp, function(r)
	return r.batch == 2^20 and r.d_model == 2560 and r.d_ff == 10240
		and r.send_ms <= r.compute_ms and r.next_send_ms > r.next_compute_ms
end)
dp_exact = all(data_parallel_calcs_schedule(divided), counted)
dp_more = all(data_parallel_calcs_schedule, more)
