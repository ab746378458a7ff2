-- tensor_parallel.lua: laws of the table of tensor-parallel groups
tables("tensor_parallel",
	"size context batch precision fusion tp dp wire transport ctas norms " ..
	"graphs")
law("the peak of a rank of a group is the sum of its categories",
	"close(parameter_MiB + gradient_MiB + optimizer_MiB + activation_MiB +",
	"temporary_MiB, peak_MiB, 1e-3, 0.01)")
law("the peak of a rank of a group is as derived, within a hundredth",
	"close(peak_MiB, derived_MiB, 0.01, 0.01)")
law("what stays on a rank of a group is as derived",
	"close(parameter_MiB, parameter_derived_MiB, 0.01, 0.01) and",
	"close(gradient_MiB, gradient_derived_MiB, 0.01, 0.01) and",
	"close(optimizer_MiB, optimizer_derived_MiB, 0.01, 0.01)")
law("a rank sends to its group what was derived",
	"close(group_MB, group_derived_MB, 1e-6, 1e-3)")
law("who has no group sends nothing to it",
	"tp > 1 or group_MB == 0 and collectives == 0 and gather_ms == 0")
law("a group gathers and scatters",
	"tp == 1 or collectives > 10 and group_MB > 0")
law("a single copy sums no gradients with others", "dp > 1 or copies_MB == 0")
law("copies send all gradients of their part twice, but for their own share",
	"dp == 1 or close(copies_MB, 2 * (dp - 1) / dp * weights_MB *",
	"(wire == 'bf16' and 0.5 or 1), 0.02, 0.01)")
law("a part has its share of the weights",
	"close(weights_MB * tp, other{tp = 1, dp = 1, ctas = 0}.weights_MB, 0.1)")
law("all grids reach the loss of one rank",
	"close(loss, other{tp = 1, dp = 1, ctas = 0}.loss, precision == 'bf16' and",
	"1e-2 or 1e-3)")
law("losses of groups are those of a model that begins to learn",
	"between(loss, 0, log(vocabulary()) + 1)")
law("a step of a group has its parts",
	"between((fwd_ms + bwd_ms + wait_ms + opt_ms) / step_ms, gpu() and 0.8 or",
	"0.1, gpu() and 1.3 or 4)")
law("from step to step of a group takes about as long as a step",
	"between(period_ms / step_ms, gpu() and 0.9 or 0.3, gpu() and 1.3 or 4)")
law("collectives of a group take less than its step",
	"not gpu() or gather_ms + scatter_ms + reduce_ms < 1.2 * step_ms")
