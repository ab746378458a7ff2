-- memory_profiling.lua: laws of its tables
tables("memory_profiling memory_profiling-timeline",
	"size context precision fusion mode")
law("parameters stay",
	"close(parameter_MiB, first('size context precision fusion').parameter_MiB,",
	"1e-3)")
law("gradients are four bytes a parameter",
	"gradient_MiB == 0 or close(gradient_MiB, of('memory_profiling-estimate',",
	"{size = size, context = context, precision = precision, fusion =",
	"fusion}).gradient_MiB, 1e-3)")
law("moments are eight bytes a parameter",
	"optimizer_MiB == 0 or close(optimizer_MiB, of('memory_profiling-estimate',",
	"{size = size, context = context, precision = precision, fusion =",
	"fusion}).optimizer_MiB, 1e-3)")
tables("memory_profiling", "size context precision fusion mode step phase")
law("the peak is the sum of its categories",
	"close(parameter_MiB + gradient_MiB + optimizer_MiB + activation_MiB +",
	"temporary_MiB, peak_MiB, 0, 0.03)")
law("the second step allocates as often as the first, but for a few",
	"step == 0 or close(allocations, other{step = 0}.allocations, 0.05, 2)")
law("each phase allocates", "integer(allocations) and allocations >= 1")
law("steps are the first and the second", "step == 0 or step == 1")
law("phases of a path allocate alike at all contexts",
	"scales('allocations', 'context', 0, 0, 1.5)")
law("activations grow with context, and no faster than its square",
	"scales('activation_MiB', 'context', 0, 2, 1.1) or activation_MiB < 1")

law("each context has several rows", "rows('context') > 2")
tables("memory_profiling-timeline", "size context precision fusion mode event")
law("the total is the sum of its categories",
	"close(parameter_MiB + gradient_MiB + optimizer_MiB + activation_MiB +",
	"temporary_MiB, total_MiB, 0, 0.03)")
law("events follow one another in time",
	"event == 0 or event > before('size context precision fusion mode').event",
	"and ms >= before('size context precision fusion mode').ms")
law("a gap between events is not ten times all time before",
	"event < 100 or ms <= 2 * before('size context precision fusion mode').ms")
law("all events are of one context", "rows('') == rows('context')")
tables("memory_profiling-tensors memory_profiling-saved",
	"size context precision fusion mode rank")
law("ranks follow one another",
	"rank == 1 or rank == before('size context precision fusion').rank + 1")
law("tensors stand in order of size",
	"rank == 1 or MiB <= before('size context precision fusion').MiB")
law("no tensor is less than empty", "MiB >= 0")
law("tensors are of one context", "rows('') == rows('context')")
tables("memory_profiling-tensors", "size context precision fusion mode rank")
law("a tensor of a layer is allocated in each, but for one",
	"integer(allocations) and allocations >= 1 and (not (ranges):find('layer')",
	"or (allocations + 1) % of('benchmarking_script', {size = size}).layers <=",
	"2)")

tables("memory_profiling-saved", "size context precision fusion rank")
law("a share is of the block",
	"close(fraction_pct, 100 * MiB / total('MiB', 'size context precision",
	"fusion'), 2e-3, 0.06)")
law("the block is what its tensors are",
	"close(block_MiB, total('MiB', 'size context precision fusion'), 0.01)")
law("the block is as derived", "close(block_MiB, derived_MiB, 1e-3)")
tables("memory_profiling-blocks", "size context precision fusion layers")
law("what a block leaves is freed backward",
	"fwd_least_MiB <= fwd_most_MiB and close(-bwd_most_MiB, fwd_most_MiB, 0.01,",
	"0.01) and close(-bwd_least_MiB, fwd_most_MiB, 0.01, 0.01) and fwd_least_MiB",
	">= 0.7 * fwd_most_MiB")
law("gradients are those of the layers",
	"close(gradient_MiB * 2 ^ 20 / 4, (2 * vocabulary() + 1 + layers * (4 *",
	"of('benchmarking_script', {size = size}).d_model + 3 *",
	"of('benchmarking_script', {size = size}).d_ff + 2)) *",
	"of('benchmarking_script', {size = size}).d_model, 1e-3)")
law("a block is as large with one layer less",
	"close(fwd_most_MiB, first('size precision fusion').fwd_most_MiB, 1e-3)")
law("blocks are of one context", "fixed('context', 'status')")
law("a block is what it saves",
	"close(fwd_most_MiB, of('memory_profiling-saved', {size = size, context =",
	"context, precision = precision, fusion = fusion}).block_MiB, 1e-3, 0.01)")
tables("memory_profiling-estimate", "size context precision fusion")
law("each category is as derived", "close($_MiB, $_derived_MiB, 2e-3, 0.3)")

law("the peak is as derived, within a hundredth",
	"close(peak_MiB, derived_MiB, 0.01)")
law("the peak is no more than its categories, no less than the largest three",
	"between(derived_MiB, parameter_derived_MiB + gradient_derived_MiB +",
	"optimizer_derived_MiB - 0.1, parameter_derived_MiB + gradient_derived_MiB +",
	"optimizer_derived_MiB + activation_derived_MiB + temporary_derived_MiB +",
	"0.1)")
law("derived gradients are four bytes a parameter, moments eight",
	"close(optimizer_derived_MiB, 2 * gradient_derived_MiB, 0, 0.02)")
law("parameters are four bytes, with a low copy six, or eight where it is fp32",
	"close(parameter_derived_MiB / gradient_derived_MiB, 1, 0.05) or precision",
	"== 'bf16' and fusion == 'fused' and (close(parameter_derived_MiB /",
	"gradient_derived_MiB, 1.5, 0.05) or close(parameter_derived_MiB /",
	"gradient_derived_MiB, 2, 0.05))")
law("the gradients are those of the parameters",
	"close(gradient_derived_MiB, of('benchmarking_script', {size =",
	"size}).parameters / 2 ^ 18, 1e-3, 0.01)")
law("a forward pass holds the parameters",
	"between(forward_derived_MiB, parameter_derived_MiB, derived_MiB)")
law("derived memory grows with context, and no faster than its square",
	"scales('activation_derived_MiB', 'context', 0.5, 2, 1.05) and",
	"scales('forward_derived_MiB', 'context', 0, 2)")
law("a workspace is the same at all contexts", "fixed('workspace_MiB', 'fusion')")
law("a context is that of several sizes", "rows('context') > 2")
