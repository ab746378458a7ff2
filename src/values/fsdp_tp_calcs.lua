-- fsdp_tp_calcs.lua: bounds of a mesh
mesh = fsdp_tp_calcs
mesh_exact = all(fsdp_tp_calcs_schedule(divided), counted)
mesh_more = all(fsdp_tp_calcs_schedule, more)
at_axes = function(hardware, axes) return mesh{hardware=hardware, axes=axes} end
both_axes = at_axes("H100 NVLink", "overlapped")
one_at_a_time = at_axes("H100 NVLink", "summed")
mesh_product = all(mesh{axes="overlapped"}, function(r)
	return near(r.bound, fs{hardware=r.hardware, pass="forward"}.bound
		*tp_calcs{hardware=r.hardware, pass="forward"}.bound, 1e-4)
end)
corner = at_axes("H100 NIC", "summed").bound_Y == 1
whole_less = all(mesh, function(r) return r.N < r.bound end)
port = at_axes("H100 NIC", "overlapped")
port_most = port.Y == 1 and all(mesh, function(r)
	return r.N/r.bound >= port.N/port.bound
end)
