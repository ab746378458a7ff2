-- kernel_speed.lua: laws of its tables
tables("kernel_speed", "size precision op path")
law("bandwidth is bytes over time", "close(GBps, bytes / us / 1e3, 2e-3)")
law("the fraction is that of a copy",
	"close(fraction, GBps / copy_GBps, 1e-3, 1e-4)")
law("a copy of as many bytes", "close(copy_us, bytes / copy_GBps / 1e3, 1e-3)")
law("the least time is no more than the median", "0 < min_us and min_us <= us")
law("of n times, the least is within n deviations",
	"us - min_us <= 30 * sd_us + 0.002")
law("a copy is as fast as at the peak, within half",
	"between(copy_GBps / of('peaks', {quantity = 'copy'}).max, 0.5, 2)")
law("counts of kernels and sets", "integer(sets) and sets >= 1")
law("fused paths launch no more kernels than eager ones",
	"path == 'eager' or kernels <= other{path = 'eager'}.kernels")
law("kernels are counted", "integer(kernels) and kernels >= 1")
law("an error is a few roundings at most",
	"between(error, 0, precision == 'bf16' and 2 ^ -6 or 2 ^ -18)")
law("sets fill the footprint, less than twice over",
	"bytes * sets <= 2 * 256 * 2 ^ 20 or sets == 1")
