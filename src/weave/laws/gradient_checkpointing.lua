-- gradient_checkpointing.lua: laws of its tables
tables("gradient_checkpointing", "size context precision fusion nested K")
law("the peak of checkpointing is as derived",
	"close(peak_MiB, derived_MiB, 1e-3, 0.1)")
law("checkpoints change no result: the loss is the same to a thousandth",
	"close(loss, first('').loss, 1e-3)")
law("with checkpoints backward takes from 0.6 times to four times as long",
	"K == 0 or bwd_ms >= first('').bwd_ms * 0.6 and bwd_ms <= 4 *",
	"first('').bwd_ms")
law("a forward pass takes as long as without, within three times",
	"between(fwd_ms / first('').fwd_ms, 1/3, 3)")
law("one run has one context and one workspace",
	"fixed('context', 'status') and fixed('workspace_MiB', 'status')")
law("K is at most the layers",
	"integer(K) and between(K, 0, of('benchmarking_script', {size =",
	"size}).layers)")
