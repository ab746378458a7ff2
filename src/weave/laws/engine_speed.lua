-- engine_speed.lua: laws of its tables
tables("engine_speed", "size context batch")
law("a rate is work over time",
	"close(rate_GFlops, step_GFLOP / (fwd_ms + bwd_ms) * 1e3, 1e-3)")
law("a fraction is one rate over another",
	"close(fraction, rate_GFlops / sgemm_GFlops, 1e-3)")
law("a layer's matmul is not faster than the largest by half",
	"between(layer_GFlops / sgemm_GFlops, 0.35, 1.5)")
law("backward is one to four times forward here",
	"between(bwd_ms / fwd_ms, 1, 4)")
law("memory is as derived", "close(peak_MiB, derived_MiB, 1e-3)")
law("three passes of the small model's parameters",
	"between(step_GFLOP * 1e9 / (6 * 128625408 * batch * context), 0.9, 1.1)")
