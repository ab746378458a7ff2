-- pytorch_peers.lua: laws of its tables
tables("pytorch_peers", "impl size context precision")
law("medians of the phases make the median step, about",
	"close(fwd_ms + bwd_ms + opt_ms, step_ms, 0.5)")
law("a forward pass alone takes as long as in a step, within four times",
	"between(fwd_only_ms / fwd_ms, 1/4, 4)")
law("backward is no faster than half of forward, nor five times slower",
	"between(bwd_ms / fwd_ms, 0.5, 5)")
law("a step's deviation is less than its time", "step_sd_ms < step_ms")
law("a peer's called step holds parameters, gradients and moments",
	"impl == 'pytorch-best-graphs' or peak_MiB >=",
	"16 * of('benchmarking_script', {size = size}).parameters / 2 ^ 20")
law("a peer's peak is within four times of ours",
	"between(peak_MiB / other{impl = 'ours'}.peak_MiB, 0.25, 4)")
law("our peaks are those measured before",
	"impl ~= 'ours' or close(peak_MiB, of('benchmarking_mixed_precision', {size",
	"= size, context = context, precision = precision}).peak_MiB, 0, 0.2)")
law("our eager peaks are those measured before",
	"impl ~= 'ours-eager' or close(peak_MiB, of('benchmarking_script', {size =",
	"size, context = context, precision = precision, fusion =",
	"'eager'}).peak_MiB, 0, 0.2)")
law("all run on one context", "fixed('context', 'status')")
law("a peer's loss is no more than that of equal odds",
	"status ~= 'ok' or between(loss, 0, log(vocabulary()) + 1)")
law("larger models take longer",
	"step_ms >= 0.6 * before('impl precision').step_ms")

law("larger models need more memory",
	"peak_MiB >= before('impl precision').peak_MiB")
