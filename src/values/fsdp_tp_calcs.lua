-- fsdp_tp_calcs.lua: bounds of a mesh
mesh = fsdp_tp_calcs
at_axes = by(mesh, "hardware, axes")
both_axes = at_axes("H100 NVLink", "overlapped")
one_at_a_time = at_axes("H100 NVLink", "summed")
mesh_product = all(mesh{axes="overlapped"}, "near(bound, fs{hardware=hardware, \z
	pass='forward'}.bound*tp_calcs{hardware=hardware, pass='forward'}.bound, \z
	1e-4)")
port = at_axes("H100 NIC", "overlapped")
