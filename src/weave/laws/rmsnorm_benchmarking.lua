-- rmsnorm_benchmarking.lua: laws of its tables
tables("rmsnorm_benchmarking rmsnorm_benchmarking-widths",
	"rows width precision by impl norm variant")
law("a forward pass moves two arrays, of two bytes an element or four",
	"close(fwd_fraction * copy_GBps * fwd_ms, 1e-6 * rows * width *",
	"(gpu() and precision == 'bf16' and 4 or 8), 2e-3)")
law("a backward pass moves three",
	"close(bwd_fraction * copy_GBps * bwd_ms, 1e-6 * rows * width *",
	"(gpu() and precision == 'bf16' and 6 or 12), 2e-3)")
law("both move five",
	"close(both_fraction * copy_GBps * both_ms, 1e-6 * rows * width *",
	"(gpu() and precision == 'bf16' and 10 or 20), 2e-3)")
law("each pass of a variant launches at least one kernel",
	"integer(fwd_kernels) and integer(bwd_kernels) and min(fwd_kernels,",
	"bwd_kernels) >= 1")
law("both passes take about as long as one and the other",
	"not gpu() or between(both_ms / (fwd_ms + bwd_ms), 0.6, 1.6)")
