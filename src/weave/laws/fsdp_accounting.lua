-- fsdp_accounting.lua: laws of tables of sharding
tables("optimizer_state_sharding_accounting",
	"size context batch precision fusion strategy prefetch bucket_mb wire " ..
	"transport ctas sums ranks moment")
law("a rank that was just made has no activations",
	"moment ~= 'init' or activation_MiB < 0.01 * peak_MiB + 0.01")
law("without a strategy there are no gradients at first",
	"moment ~= 'init' or strategy ~= 'single' or gradient_MiB == 0")
law("the step's peak is its own until the update",
	"moment ~= 'after' or peak_MiB <= other{moment = 'before'}.peak_MiB + 0.01")
tables("optimizer_state_sharding_accounting fsdp_accounting",
	"size context batch precision fusion strategy prefetch bucket_mb wire " ..
	"transport ctas sums ranks moment")
law("the peak of a rank is the sum of its categories",
	"close(parameter_MiB + gradient_MiB + optimizer_MiB + activation_MiB +",
	"temporary_MiB, peak_MiB, 1e-3, 0.01)")
law("what stays is as derived, but for units in which memory is shared",
	"close(parameter_MiB, parameter_derived_MiB, 0.02, 0.01) and",
	"close(gradient_MiB, gradient_derived_MiB, 0.015, 0.01) and",
	"close(optimizer_MiB, optimizer_derived_MiB, 0.015, 0.01)")
law("what is active does not exceed the peak", "active_MiB <= peak_MiB + 0.01")
law("the derived peak holds what stays",
	"derived_MiB >= parameter_derived_MiB + gradient_derived_MiB +",
	"optimizer_derived_MiB - 0.01")
law("a workspace is not negative", "workspace_MiB >= 0")
tables("fsdp_accounting",
	"size context batch precision fusion strategy prefetch bucket_mb wire " ..
	"transport ctas sums ranks")
law("the peak of a rank is as derived, within a hundredth",
	"close(peak_MiB, derived_MiB, 0.01, 0.01)")
law("gathers ahead take slots",
	"prefetch == 0 or sums == 'optimizer' or parameter_MiB >=",
	"other{prefetch = 0}.parameter_MiB - 0.01")
tables("optimizer_state_sharding_accounting-times fsdp_accounting",
	"size context batch precision fusion strategy prefetch bucket_mb wire " ..
	"transport ctas sums ranks")
law("a step under a strategy has its parts",
	"between((fwd_ms + bwd_ms + wait_ms + opt_ms) / step_ms, gpu() and 0.8 or",
	"0.1, gpu() and 1.3 or 4)")
law("no part takes longer than the step under a strategy",
	"not gpu() or max(fwd_ms, bwd_ms, wait_ms, opt_ms) <= step_ms * 1.05")
law("from step to step takes about as long as a step",
	"between(period_ms / step_ms, gpu() and 0.9 or 0.3, gpu() and 1.3 or 4)")
law("who trains alone does not communicate",
	"strategy ~= 'single' or alone_ms < 0.1 * step_ms + 0.5")
law("a rank sends what was derived",
	"close(all_reduce_MB + reduce_scatter_MB + exchange_MB + all_gather_MB +",
	"broadcast_MB, sent_derived_MB, 2e-3, 1e-3)")
law("weights in fp32 are those of the size", "fixed('weights_MB', 'size')")
law("losses of all strategies are those of a model that begins to learn",
	"between(loss, 0, log(vocabulary()) + 2)")
law("losses of all strategies that sum in one order are alike",
	"strategy == 'single' or ranks > 2 and bucket_mb > 0 or close(loss,",
	"other{strategy = 'zero1', bucket_mb = 0, prefetch = 0}.loss, 1e-3)")
tables("fsdp_accounting-timeline",
	"strategy prefetch sums queue class name start_us")
law("what a queue did under FSDP ends after it began",
	"end_us >= start_us and start_us >= -1e6")
law("collectives stand in the communication queue",
	"(class == 'all-gather' or class == 'reduce-scatter' or class ==",
	"'all-reduce' or class == 'all-to-all' or class == 'exchange') ==",
	"(queue == 'communication')")
law("a timeline of FSDP has many spans", "rows('prefetch') > 12")
