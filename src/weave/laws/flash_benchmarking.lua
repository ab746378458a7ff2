-- flash_benchmarking.lua: laws of its tables
tables("flash_benchmarking flash_benchmarking-peers",
	"dtype batch heads n d causal variant")
law("forward FLOPs are two matmuls of half the scores",
	"close(fwd_GFLOP, 2e-9 * d * batch * heads * n * (n + 1), 1e-5)")
law("backward FLOPs are five", "close(bwd_GFLOP, 2.5 * fwd_GFLOP, 1e-5)")
law("forward traffic is four arrays, of two or four bytes an element",
	"close(fwd_MB, 16e-6 * batch * heads * n * d, 1e-5) or dtype ~= 'fp32' and",
	"close(fwd_MB, 8e-6 * batch * heads * n * d, 1e-5)")
law("backward traffic is eight", "close(bwd_MB, 2 * fwd_MB, 1e-5)")
law("eight arrays are held at the peak", "peak_MiB >= bwd_MB / 1.048576 - 0.006")
law("FlashAttention holds no scores: twice its arrays at most, and a MiB",
	"variant == 'naive' or peak_MiB <= 2 * bwd_MB / 1.048576 + 1")
law("naive attention holds one matrix of scores to four, and a workspace",
	"variant ~= 'naive' or between(peak_MiB - bwd_MB / 1.048576, 2 * batch *",
	"heads * n ^ 2 / 2 ^ 20 - 0.01, 16 * batch * heads * n ^ 2 / 2 ^ 20 + 64)")
law("both passes take the time of one after the other, within three times",
	"between(both_ms / (fwd_ms + bwd_ms), 0.5, fwd_ms < 1 and 3 or 2)")
law("a replayed graph takes no more than half as long again as calls",
	"not gpu() or (",
	"fwd_replay_ms <= 1.5 * fwd_ms + 0.005 and bwd_replay_ms <= 1.5 * bwd_ms +",
	"0.005)")
law("replays leave out launches only: half of a long pass stays",
	"not gpu() or (",
	"fwd_ms < 1 or fwd_replay_ms >= 0.5 * fwd_ms and bwd_replay_ms >= 0.5 *",
	"bwd_ms)")

law("attention is not faster than the peak by half",
	"max(fwd_GFLOP / fwd_ms, bwd_GFLOP / bwd_ms, fwd_GFLOP / fwd_replay_ms,",
	"bwd_GFLOP / bwd_replay_ms) <= 1.5 * of('peaks', {quantity = dtype == 'fp32'",
	"and 'tf32' or dtype}).max")
law("five matmuls take at least as long as two, and at most eight times",
	"between(bwd_ms / fwd_ms, 0.7, 8)")
law("replayed, backward is 0.7 to 8 times forward",
	"between(bwd_replay_ms / fwd_replay_ms, 0.7, 8)")
tables("flash_benchmarking", "dtype batch heads n d causal variant")
law("time grows with length, and no faster than five times its square",
	"scales('fwd_ms', 'n', 0, 2, 5) and scales('bwd_ms', 'n', 0, 2, 5) and",
	"scales('both_ms', 'n', 0, 2, 5)")
law("replayed time grows with length, within five times its square",
	"scales('fwd_replay_ms', 'n', 0, 2, 5) and scales('bwd_replay_ms', 'n', 0,",
	"2, 5)")
law("memory grows with length, and no faster than its square",
	"scales('peak_MiB', 'n', 0, 2, 1.5)")
law("time grows with the width of a head, and no faster than its square",
	"scales('fwd_ms', 'd', 0, 2, 3) and scales('bwd_ms', 'd', 0, 2, 3)")

-- laws of the grid of shapes
tables("flash_benchmarking-grid", "dtype batch heads n d causal variant")
law("attention in the grid is not faster than the peak by half",
	"2e-9 * d * batch * heads * n * (causal == 'yes' and n + 1 or 2 * n) *",
	"max(1 / min(fwd_ms, fwd_replay_ms), 2.5 / min(bwd_ms, bwd_replay_ms)) <=",
	"1.5 * of('peaks', {quantity = dtype == 'fp32' and 'tf32' or dtype}).max")
law("in the grid, five matmuls take as long as two, to eight times as long",
	"between(bwd_ms / fwd_ms, gpu() and 0.7 or 0.3, gpu() and 8 or 20) and",
	"between(bwd_replay_ms / fwd_replay_ms, gpu() and 0.7 or 0.3, gpu() and 8 or",
	"20)")
law("replays leave out launches only, and add nothing",
	"not gpu() or fwd_replay_ms <= 1.5 * fwd_ms + 0.005 and bwd_replay_ms <=",
	"1.5 * bwd_ms + 0.005 and (fwd_ms < 1 or fwd_replay_ms >= 0.5 * fwd_ms and",
	"bwd_replay_ms >= 0.5 * bwd_ms)")
law("a pass runs ten times at least, and more often if it is short",
	"not gpu() or between(runs, 10, 200) and between(runs * (fwd_ms + bwd_ms),",
	"40, max(600, 15 * (fwd_ms + bwd_ms))) or runs == 200")
law("errors are the format's", "error > 0 and error <= (dtype == 'fp32' and",
	"5e-5 or 5e-2)")
law("how dQ is summed is nothing to the forward pass",
	"not gpu() or variant ~= 'warp_specialized-atomic' or between(fwd_replay_ms",
	"/ other{variant = 'warp_specialized'}.fwd_replay_ms, 0.67, 1.5)")
law("a mask only leaves work out",
	"not gpu() or causal == 'no' or fwd_replay_ms <= 1.2 * other{causal =",
	"'no'}.fwd_replay_ms and bwd_replay_ms <= 1.2 * other{causal =",
	"'no'}.bwd_replay_ms")
law("the grid has both kinds of masks, short and long, one head and many",
	"rows('') < 10 or rows('causal') > 1 and rows('causal') < rows('')")

-- laws of calls from PyTorch
tables("flash_benchmarking-calls", "op tensors dtype n d impl")
law("a call returns, and then its work is done",
	"$_call_us > 0 and $_call_us <= $_done_us")
law("on a CPU nothing is left to wait for",
	"tensors == 'gpu' or close($_call_us, $_done_us, 0, 1)")
law("the calls of both passes cost more than one, up to thirty times as much",
	"between(both_call_us / fwd_call_us, 1.2, 30) and",
	"between(both_done_us / fwd_done_us, 1.2, 30)")
law("a call costs microseconds", "fwd_call_us >= 1 and both_done_us <= 5000")
law("ours and PyTorch's calls are alike, within ten times",
	"between($_us / other{impl = 'ours'}.$_us, 0.1, 10)")
law("what is called is called by ours and by PyTorch",
	"impl == 'ours' and rows('op tensors') > 1 or impl ~= 'ours'")
tables("flash_benchmarking-tiles", "dtype batch heads n d causal")
law("the chosen tiling takes the time of one of them",
	"min(abs(chosen_ms - m64_ms), abs(chosen_ms - multi_warpgroup_ms),",
	"abs(chosen_ms - split_kv_ms)) <= 0.1 * chosen_ms + 0.002")

law("no tiling is faster than the peak by half",
	"2e-9 * d * batch * heads * n * (n + 1) / min(m64_ms, multi_warpgroup_ms,",
	"split_kv_ms) <= 1.5 * of('peaks', {quantity = dtype}).max")
law("tilings do the same work: none takes four times as long as another",
	"max(m64_ms, multi_warpgroup_ms, split_kv_ms) <= 4 * min(m64_ms,",
	"multi_warpgroup_ms, split_kv_ms)")
law("a tiling's time grows with length, and no faster than its square",
	"scales('m64_ms', 'n', 0, 2, 1.5) and scales('split_kv_ms', 'n', 0, 2, 1.5)",
	"and scales('multi_warpgroup_ms', 'n', 0, 2, 1.5)")
law("the chosen tiling's time grows with length",
	"scales('chosen_ms', 'n', 0, 2, 1.5)")
law("a tiling's time grows with the width of a head",
	"not gpu() or (",
	"scales('chosen_ms', 'd', 0, 2, 2) and scales('m64_ms', 'd', 0, 2, 2) and",
	"scales('split_kv_ms', 'd', 0, 2, 2) and scales('multi_warpgroup_ms', 'd',",
	"0, 2, 2))")
tables("flash_benchmarking-errors", "dtype data d")
law("errors of a rounding or less in bf16, of a few in fp32",
	"dtype == 'bf16' and min(o, dq, dk, dv, peer_o, peer_dq, peer_dk, peer_dv)",
	">= 2 ^ -10 and max(o, dq, dk, dv, peer_o, peer_dq, peer_dk, peer_dv) <= 1.4",
	"* 2 ^ -8 or dtype == 'fp32' and min(o, dq, dk, dv) >= 2 ^ -23 and max(o,",
	"dq, dk, dv, peer_o, peer_dq, peer_dk, peer_dv) <= 2 ^ -19")
law("errors are as large as the peer's, within four times",
	"between($ / peer_$, 0.25, 4)")

law("an error does not depend on the head's width, but for a factor",
	"between(dq / below('d', 'dq').dq, 0.6, 1.67) and between(dk / below('d',",
	"'dk').dk, 0.6, 1.67) and between(dv / below('d', 'dv').dv, 0.6, 1.67) and",
	"between(o / below('d', 'o').o, 0.6, 1.67)")
tables("flash_benchmarking-model", "size context precision attention")
law("naive attention and FlashAttention train in times of one order",
	"between(step_ms / other{attention = 'flash'}.step_ms, 0.3, 10)")
law("FlashAttention needs no more memory than naive attention",
	"peak_MiB >= other{attention = 'flash'}.peak_MiB - 0.2")
law("the model's peak is the estimate's, to about a MiB",
	"attention ~= 'flash' or close(peak_MiB, of('memory_profiling-estimate',",
	"{size = size, context = context, precision = precision, fusion =",
	"'fused'}).peak_MiB + of('memory_profiling-estimate', {size = size, context",
	"= context, precision = precision, fusion = 'fused'}).workspace_MiB, 0, 1.5)")
law("a model's memory grows with context", "scales('peak_MiB', 'context', 0, 2)")
law("a model's time grows with context, and no faster than its square",
	"scales('fwd_ms', 'context', 0, 2, 1.25) and scales('bwd_ms', 'context', 0,",
	"2, 1.25) and scales('step_ms', 'context', 0, 2, 1.25)")
tables("flash_benchmarking flash_benchmarking-tiles flash_benchmarking-peers",
	"dtype d")
law("no head width is tried once", "rows('') < 8 or rows('d') > 1")
tables("flash_benchmarking flash_benchmarking-tiles flash_benchmarking-peers",
	"dtype batch heads n d causal")
law("no length, number of heads or batch is tried once",
	"rows('') < 8 or rows('n') > 1 and rows('heads') > 1 and rows('batch') > 1")

law("each combination of batch and heads is tried at several lengths or widths",
	"rows('') < 8 or rows('batch heads') > 1 and rows('heads d') > 1")
tables("flash_benchmarking-model", "size context precision attention")
law("each context is that of several models", "rows('context') > 1")
