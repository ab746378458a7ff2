-- layer_norm.lua: laws of its tables
tables("layer_norm", "rows width by impl norm")
law("forward reads and writes the array",
	"close(fwd_GBps, 8e-6 * rows * width / fwd_ms, 2e-3)")
law("backward reads three arrays and writes one",
	"close(bwd_GBps, 16e-6 * rows * width / bwd_ms, 2e-3)")
law("a backward norm's fraction is that of a copy",
	"close(bwd_fraction, bwd_GBps / copy_GBps, 1e-3)")
law("a forward norm's fraction is that of a copy",
	"close(fwd_fraction, fwd_GBps / copy_GBps, 1e-3)")
law("a norm launches at least one kernel",
	"integer(fwd_kernels) and integer(bwd_kernels) and between(fwd_kernels, 1,",
	"bwd_kernels)")
tables("layer_norm-model", "size context norm fusion")
law("before training the loss is that of equal odds, about",
	"between(loss, log(vocabulary()) - 1, log(vocabulary()) + 1)")
law("without an optimizer, parameters and gradients are held",
	"peak_MiB >= 8 * of('benchmarking_script', {size = size}).parameters / 2 ^",
	"20")
law("peaks are the estimate's less the moments",
	"norm == 'layernorm' or close(peak_MiB, of('memory_profiling-estimate',",
	"{size = size, context = context, precision = 'fp32', fusion =",
	"fusion}).peak_MiB + of('memory_profiling-estimate', {size = size, context =",
	"context, precision = 'fp32', fusion = fusion}).workspace_MiB - 8 *",
	"of('benchmarking_script', {size = size}).parameters / 2 ^ 20, 0, 0.2)")

law("which norm, that changes memory little and time not twofold",
	"close(peak_MiB, first('size fusion').peak_MiB, 0.05) and between(fwd_ms /",
	"first('size fusion').fwd_ms, 0.5, 2) and between(bwd_ms / first('size",
	"fusion').bwd_ms, 0.5, 2)")
law("norms are timed in models of one context", "fixed('context', 'status')")
