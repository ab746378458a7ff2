-- benchmarking_script.lua: laws of its tables
tables("benchmarking_script benchmarking_script-forward",
	"size context batch precision fusion")
law("a step is its phases",
	"close(fwd_ms + bwd_ms + opt_ms, step_ms, 1e-5, 2e-4)")
law("a step takes no less than its forward pass", "step_ms >= fwd_ms")
law("the deviation of a sum is no more than the sum of deviations",
	"step_sd_ms <= fwd_sd_ms + bwd_sd_ms + opt_sd_ms + 3e-4")
law("the deviation of a phase is no more than all the others",
	"2 * max(fwd_sd_ms, bwd_sd_ms, opt_sd_ms) <= step_sd_ms + fwd_sd_ms +",
	"bwd_sd_ms + opt_sd_ms + 6e-4")
law("the least steps have no less than the least phases",
	"step_min_ms >= fwd_min_ms + bwd_min_ms + opt_min_ms - 3e-4")
law("parameters are those of the shape",
	"parameters == 2 * vocabulary() * d_model + d_model + layers * (4 *",
	"d_model ^ 2 + 3 *",
	"d_model * d_ff + 2 * d_model)")
law("forward FLOPs are those of the shape",
	"close(fwd_GFLOP, 2e-9 * batch * context * (parameters - vocabulary() *",
	"d_model -",
	"(2 * layers + 1) * d_model + 2 * layers * context * d_model), 1e-4, 1e-4)")
law("heads divide the width", "integer(d_model / heads)")
law("a size has one shape",
	"fixed('d_model', 'size') and fixed('d_ff', 'size') and fixed('layers',",
	"'size') and fixed('heads', 'size')")
law("no phase is faster than the measured peak by half",
	"fwd_GFLOP / fwd_ms <= 1.5 * of('peaks', {quantity = precision}).max")

law("backward, with twice the FLOPs, is not faster than that",
	"2 * fwd_GFLOP / bwd_ms <= 1.5 * of('peaks', {quantity = precision}).max")
law("AdamW reads 16 bytes and writes 12 for each parameter",
	"28e-6 * parameters / opt_ms <= 1.5 * of('peaks', {quantity = 'read'}).max",
	"or parameters < 16e6")
law("backward takes between one and four times as long as forward",
	"between(bwd_ms / fwd_ms, 1, 4)")
law("median backward is one to four times median forward",
	"between(bwd_med_ms / fwd_med_ms, 1, 4)")
law("the time of a phase grows with context, and no faster than its square",
	"scales('fwd_ms', 'context', -0.25, 2, 2) and scales('bwd_ms', 'context',",
	"-0.25, 2, 2)")
law("AdamW does not see the context", "scales('opt_ms', 'context', 0, 0, 2.5)")
law("kernels are as many at all contexts, within half",
	"integer(kernels) and scales('kernels', 'context', 0, 0, 1.5)")
law("memory grows with context, and no faster than its square",
	"scales('peak_MiB', 'context', 0, 2)")
law("a step's memory holds four arrays of the parameters in fp32",
	"step_ms == fwd_ms or peak_MiB >= 16 * parameters / 2 ^ 20")
law("the peak is that of the memory estimate's run",
	"close(peak_MiB, of('memory_profiling-estimate', {size = size, context =",
	"context, precision = precision, fusion = fusion}).peak_MiB +",
	"of('memory_profiling-estimate', {size = size, context = context, precision",
	"= precision, fusion = fusion}).workspace_MiB, 0, 0.2)")

law("a forward pass holds the parameters, in bf16 twice",
	"step_ms > fwd_ms or between(peak_MiB, (precision == 'bf16' and 6 or 4) *",
	"parameters / 2 ^ 20, 1.1 * (precision == 'bf16' and 6 or 4) * parameters /",
	"2 ^ 20 + 64)")
law("no loss is far above that of equal odds",
	"between(loss, 0, log(vocabulary()) + 1)")
tables("benchmarking_script*", "")
law("a mean is near its median: by less than the deviation",
	"abs($_ms - $_med_ms) <= $_sd_ms + 1e-4")
law("of ten times, the mean is near the least: by less than three deviations",
	"$_min_ms > 0 and between($_ms - $_min_ms, -1e-4, 2.85 * $_sd_ms + 1e-4)")
law("the median is no less than the least", "$_min_ms <= $_med_ms")
tables("benchmarking_script-warmup", "size context warmup")
law("the first of ten steps is no further from the mean than three deviations",
	"first_ms >= step_min_ms and first_ms - step_ms <= 2.85 * step_sd_ms + 1e-4")
law("with warmup or without, the least step is as fast",
	"between(step_min_ms / first('size context').step_min_ms, 0.5, 2)")
law("a size has one context", "fixed('context', 'size')")
law("after warming up a median step is as long as another",
	"between(step_med_ms / first('size context').step_med_ms, 0.5, 2)")
tables("benchmarking_script-steps", "start step")
law("a step is its phases here too",
	"close(fwd_ms + bwd_ms + opt_ms, step_ms, 1e-5, 3e-4)")
law("steps are counted from one", "step == 1 or step == before('start').step + 1")
law("what happens once happens in the first step",
	"step == 1 or open_ms + threads_ms + choice_ms + library_ms + alloc_ms == 0")

law("what happens once is part of the forward pass or before it",
	"step > 1 or threads_ms + choice_ms + library_ms + alloc_ms <= fwd_ms +",
	"bwd_ms + opt_ms")
law("page faults are most in the first step",
	"integer(faults) and faults >= 0 and (step == 1 or faults <",
	"first('start').faults)")
law("page faults take part of a step", "between(faults_ms, 0, step_ms)")
law("the first step computes what the others do",
	"step > 1 or fwd_ms >= last('start').fwd_ms / 2")
tables("benchmarking_script-split", "size context precision")
law("classes of operations make a step with its events, or less",
	"close(linear_ms + attention_ms + elementwise_ms + optimizer_ms, event_ms,",
	"0.1)")
law("events cost little: less than half of a step",
	"between(event_ms / step_ms, 0.7, 1.5)")
law("linear FLOPs are six for each parameter and token, the embedding aside",
	"linear_GFLOP * 1e9 / context / parameters / 4 <= 6 and linear_GFLOP * 1e9 /",
	"context / parameters / 4 > 2")
law("linear operations keep to the peak",
	"linear_GFLOP / linear_ms <= 1.5 * of('peaks', {quantity = precision}).max")
law("a split step takes its parameters' time",
	"28e-6 * parameters / optimizer_ms <= 1.5 * of('peaks', {quantity =",
	"'read'}).max or parameters < 16e6")

law("precision changes neither FLOPs nor parameters",
	"fixed('linear_GFLOP', 'size context') and fixed('parameters', 'size') and",
	"fixed('attention_GFLOP', 'size context') and fixed('context', 'status')")
law("the split is of the models timed",
	"parameters == of('benchmarking_script', {size = size}).parameters")
law("linear and attention FLOPs are three forward passes",
	"close((linear_GFLOP + attention_GFLOP) / 3, of('benchmarking_script', {size",
	"= size, context = context}).fwd_GFLOP, 1e-3)")
law("attention has 12 T^2 C FLOPs in each layer",
	"close(attention_GFLOP * 1e9, 48 * context ^ 2 * of('benchmarking_script',",
	"{size = size}).d_model * of('benchmarking_script', {size = size}).layers,",
	"1e-2, 5e5)")
