-- first_kernels.lua: laws of its tables
tables("first_kernels", "version rows width")
law("all versions sum about as many elements",
	"between(rows * width / (gpu() and 2^26 or 2^22), 1 - width / 2^22, 1)")
law("a rate is that of the bytes that are read and written",
	"close(GBps * ms, 4e-6 * (rows * width + rows), 2e-3)")
law("a sum of numbers drawn from -4 to 4 is nearly exact",
	"max_error <= 4 * width * width / 2^24")
tables("first_kernels-levels", "level")
law("a level answers in more than a nanosecond, and within ten microseconds",
	"between(latency_ns, 0.5, 1e4) and latency_sd_ns >= 0")
law("no level answers later than memory",
	"latency_ns <= other{level = 'memory'}.latency_ns")
