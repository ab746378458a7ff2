-- the bound in ms of a row of a table
flash_bound_of = function(heads, n, d, dtype, pass)
	return flash_bound({heads=heads, n=n, d=d, dtype=dtype}, pass)
end
flash_lead64 = flash_on("warp_specialized", 16, 16384, 64)
exponentials = flash_exp_ms(flash_lead64)/flash_matmul_ms(flash_lead64, "fwd")
forward_near = flash_fraction(flash_replayed(flash_lead), "fwd") > 0.8
	and flash_fraction(flash_replayed(flash_lead64), "fwd") > 0.6
backward_near = between(flash_fraction(flash_lead, "bwd"), 0.5, 0.87)
	and between(flash_fraction(flash_lead64, "bwd"), 0.5, 0.9)
