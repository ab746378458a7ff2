-- rmsnorm_forward.lua: the kernels' rows, registers, and blocks of an SM
rms = on("h100").rmsnorm_benchmarking
rms_widths = on("h100").rmsnorm_benchmarking_widths
norm_fwd = counters_of("rmsnorm forward")
-- which come in eights
blocks_that_fit = function(threads, registers) return floor(65536
	/(threads*8*ceil(registers/8))) end
norm_blocks = function(n) return blocks_that_fit(n, norm_fwd.registers) end
rms_at = by(rms_widths{precision="fp32", variant="by_width"}, "width")
