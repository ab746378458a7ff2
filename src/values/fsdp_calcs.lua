-- fsdp_calcs.lua: bounds of FSDP, and what a rank holds under each strategy
fs = fsdp_calcs
nvlink_fs = fs{hardware="H100 NVLink", pass="forward"}
fs_rows = ceil(nvlink_fs.d_model/nvlink_fs.N)*nvlink_fs.N/nvlink_fs.d_model - 1
-- bytes of a parameter on one of N ranks, in bf16: weights that matmuls read,
-- masters, gradients, moments
xxl_P = communication_accounting{what="all three"}.parameters
state_left = function(strategy, N)
	return ({ddp=16, zero1=4 + 12/N, zero2=2 + 14/N, zero3=16/N})[strategy]
end
state_fits = function(strategy, P)           -- the fewest ranks, or 0
	for n = 0, 6 do
		if state_left(strategy, 2^n)*P < 80e9 then return 2^n end
	end
	return 0
end
state_bars = {XXL=xxl_P*1e-9, Eight=large_P*1e-9}  -- parameters, in billions
