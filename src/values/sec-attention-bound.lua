-- the bound in ms of a row of a table
flash_bound_of = function(heads, n, d, dtype, pass)
	return flash_bound({heads=heads, n=n, d=d, dtype=dtype}, pass)
end
flash_lead64 = flash_on("warp_specialized", 16, 16384, 64)
