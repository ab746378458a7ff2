-- benchmarking_mixed_precision.lua: laws of its tables
tables("benchmarking_mixed_precision flash*-model gradient_checkpointing",
	"size context precision")
law("median phases are less than the median step, about",
	"fwd_ms + bwd_ms <= 1.05 * step_ms")
law("a median step is no more than its phases and half again",
	"step_ms <= 2.5 * (fwd_ms + bwd_ms)")
law("peak memory is at least four arrays of the parameters",
	"peak_MiB >= 16 * of('benchmarking_script', {size = size}).parameters / 2 ^",
	"20")
tables("benchmarking_mixed_precision *-model", "size context precision")
law("backward by medians takes one to four times forward",
	"between(bwd_ms / fwd_ms, 1, 4.5)")
tables("benchmarking_mixed_precision flash_benchmarking-model",
	"size context precision")
law("no median phase is faster than the peak by half",
	"of('benchmarking_script', {size = size, context = context}).fwd_GFLOP /",
	"fwd_ms <= 1.5 * of('peaks', {quantity = precision}).max")
tables("benchmarking_mixed_precision", "size context precision")
law("larger models take longer in each format",
	"fwd_ms >= 0.6 * before('precision').fwd_ms and bwd_ms >= 0.6 *",
	"before('precision').bwd_ms and step_ms >= 0.6 * before('precision').step_ms")
law("formats of two bytes need as much memory",
	"precision ~= 'fp16' or peak_MiB == other{precision = 'bf16'}.peak_MiB")
law("no format needs half as much again",
	"between(peak_MiB / other{precision = 'fp32'}.peak_MiB, 0.5, 1.5)")

law("in fp32 the peak is the estimate's",
	"precision ~= 'fp32' and precision ~= 'bf16' or close(peak_MiB,",
	"of('memory_profiling-estimate', {size = size, context = context, precision",
	"= precision, fusion = 'fused'}).peak_MiB + of('memory_profiling-estimate',",
	"{size = size, context = context, precision = precision, fusion =",
	"'fused'}).workspace_MiB, 0, 0.2)")
law("all sizes run on one context", "fixed('context', 'status')")
law("a trained loss is no more than that of equal odds",
	"between(loss, 0, log(vocabulary()) + 1)")
tables("benchmarking_mixed_precision-layernorm", "type narrow")
law("half the spacing at one is a power of two",
	"one_rounding == 2 ^ -(type == 'fp16' and 11 or 8)")
law("errors are not negative",
	"not (ordinary < 0 or large < 0 or offset < 0 or tiny < 0)")
