-- pytorch_ddp_peers.lua: laws of its tables
tables("pytorch_ddp_peers pytorch_ddp_peers-sharded",
	"impl size precision ranks bucket_mb")
law("the ratio is that of the times",
	"close(ratio, step_ms / single_ms, 0.001)")
law("a step with others is no shorter than alone, within a tenth",
	"ratio >= 0.9")
law("both deviations are less than the times",
	"step_sd_ms < step_ms and single_sd_ms < single_ms")
tables("pytorch_ddp_peers", "impl size precision ranks bucket_mb")
law("a rank holds parameters, gradients, buckets and moments",
	"peak_MiB >= 18 * of('benchmarking_script', {size = size}).parameters / 2 ^",
	"20")
law("on several GPUs, larger models take longer",
	"step_ms >= 0.6 * before('impl precision').step_ms")
tables("pytorch_ddp_peers-sharded", "impl size precision ranks bucket_mb")
law("a rank that divides the moments holds less than one that does not",
	"impl ~= 'ours-zero1' and impl ~= 'ours-fsdp' or peak_MiB <",
	"0.7 * other{impl = 'ours'}.peak_MiB")
tables("pytorch_ddp_peers-classes", "impl size precision ranks bucket_mb run " ..
	"class")
law("no class of a step is longer than it, but for two queues at once",
	"ms <= 1.02 * other{class = 'step'}.ms")
law("an all-reduce is exposed for a part of its time",
	"class ~= 'exposed' or run == 'alone' or ms <= other{class =",
	"'all-reduce'}.ms + 0.01")
law("alone there is no all-reduce",
	"run ~= 'alone' or class ~= 'all-reduce' and (class ~= 'exposed' or ms == 0)")
