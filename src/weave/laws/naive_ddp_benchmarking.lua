-- naive_ddp_benchmarking.lua: laws of tables of data parallelism
tables("naive_ddp_benchmarking minimal_ddp_flat_benchmarking " ..
	"minimal_ddp_flat_benchmarking-nodes " ..
	"ddp_overlap_individual_parameters_benchmarking " ..
	"ddp_bucketed_benchmarking ddp_bucketed_benchmarking-sizes " ..
	"ddp_bucketed_benchmarking-transports ddp_bucketed_benchmarking-ctas",
	"size context batch precision fusion kind bucket_mb wire transport ranks")
law("overlap is the part of the communication that is not exposed",
	"close(overlap, 1 - (step_ms - single_ms) / alone_ms, 2e-3, 2e-3)")
law("a step of several ranks has its parts",
	"between((fwd_ms + bwd_ms + wait_ms + opt_ms) / step_ms, gpu() and 0.8 or",
	"0.1, gpu() and 1.3 or 4)")
law("no part takes longer than the step of several ranks",
	"not gpu() or max(fwd_ms, bwd_ms, wait_ms, opt_ms) <= step_ms * 1.05")
law("gradients have two or four bytes",
	"integer(buckets) and buckets >= 1 and fixed('gradient_MB', 'size wire')")
law("half the bytes on the wire in bf16",
	"wire == 'fp32' or close(gradient_MB * 2, other{wire =",
	"'fp32'}.gradient_MB, 0, 2e-3)")
law("weights, gradients and two moments are in memory on each rank",
	"peak_MiB >= 3 * gradient_MB * (wire == 'bf16' and 2 or 1) * 1e6 / 2 ^ 20")
law("losses of several ranks are those of a model that begins to learn",
	"between(loss, 0, log(vocabulary()) + 2)")
law("all at once is one collective", "kind ~= 'flat' or buckets == 1")
law("one after another are as many collectives as parameters",
	"kind ~= 'naive' or integer((buckets - 3) / 9)")
law("one after another are equally many before and after the end of the pass",
	"kind ~= 'overlap' or buckets == other{kind = 'naive'}.buckets")
law("backward on one rank is part of its step", "single_bwd_ms < single_ms")
law("a step alone is the same for all kinds, within a busy host's factor",
	"between(single_ms / first('size context batch precision').single_ms, 1/10,",
	"10)")
law("on a GPU a step alone is the same for all kinds",
	"not gpu() or between(single_ms / first('size context batch",
	"precision').single_ms, 0.85, 1.18)")
law("on a GPU no link is faster than NVLink",
	"not gpu() or gradient_MB / alone_ms <= 500")
law("on a GPU a step with sums is no faster than without",
	"not gpu() or step_ms >= 0.95 * single_ms")
