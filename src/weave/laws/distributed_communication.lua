-- distributed_communication.lua: laws of the tables of collectives
tables("distributed_communication_single_node " ..
	"distributed_communication_single_node-hosts",
	"device transport dtype ranks bytes")
law("an all-reduce's bandwidth is its bytes over its time",
	"close(algbw_GBps, bytes / time_ms * 1e-6, 2e-3)")
law("a rank of an all-reduce sends 2(N-1)/N of the array",
	"close(busbw_GBps, algbw_GBps * 2 * (ranks - 1) / ranks, 2e-3)")
law("the least of several all-reduces is no more than their median",
	"0 < time_min_ms and time_min_ms <= time_ms * 1.0001")
law("of n all-reduces, the least is within n deviations",
	"time_ms - time_min_ms <= 30 * time_sd_ms + 0.01 * time_ms")
law("all-reduces are timed in batches of one to twenty",
	"integer(batch) and between(batch, 1, 20) and integer(runs) and runs > 0")
law("an array of more bytes takes no less time, about",
	"time_ms >= (device == 'cuda' and 0.5 or 0.1) * below('bytes',",
	"'time_ms').time_ms")
law("no bus of a GPU is faster than its NVLink", "busbw_GBps <= 450")
law("on a CPU what is sent is copied",
	"device ~= 'cpu' or busbw_GBps <= of('peaks', {quantity = 'copy'}).value")
law("a rank reduces as fast in either format, about",
	"between(time_ms / other{dtype = 'fp32'}.time_ms, device == 'cuda' and 0.6",
	"or 0.05, device == 'cuda' and (transport == 'nccl-tests' and 2",
	"or 1.6) or 30)")
law("more GPUs take no less time, about",
	"device ~= 'cuda' or time_ms >= 0.5 * below('ranks', 'time_ms').time_ms")
tables("distributed_communication_single_node-collectives",
	"collective device transport dtype ranks bytes")
law("a collective's bandwidth is its bytes over its time",
	"close(algbw_GBps, bytes / time_ms * 1e-6, 2e-3)")
law("what a rank of each collective sends",
	"close(busbw_GBps, algbw_GBps * (collective == 'broadcast' and 1 or",
	"(ranks - 1) / ranks), 2e-3)")
law("no collective on a GPU is faster than its NVLink", "busbw_GBps <= 450")
law("the least of several collectives is no more than their median",
	"0 < time_min_ms and time_min_ms <= time_ms * 1.0001")
law("collectives are timed in batches of one to twenty",
	"integer(batch) and between(batch, 1, 20) and integer(runs) and runs > 0")
law("a reduce-scatter or all-gather takes no more than an all-reduce, about",
	"time_ms <= (device == 'cuda' and 1.5 or 10) *",
	"of('distributed_communication_single_node', {device =",
	"device, transport = transport, dtype = dtype, ranks = ranks, bytes =",
	"bytes}).time_ms or collective == 'broadcast'")
tables("distributed_communication_multi_node",
	"link device transport dtype nodes ranks bytes")
law("bandwidth between nodes is bytes over time",
	"close(algbw_GBps, bytes / time_ms * 1e-6, 2e-3)")
law("between nodes a rank sends 2(N-1)/N too",
	"close(busbw_GBps, algbw_GBps * 2 * (ranks - 1) / ranks, 2e-3)")
law("the shaped link carries its rate",
	"link ~= '1 Gbit/s' or bytes < 1e6 or algbw_GBps <= 0.14")
law("nodes have equally many ranks", "integer(ranks / nodes) and nodes == 2")
law("between nodes the least is no more than the median",
	"0 < time_min_ms and time_min_ms <= time_ms * 1.0001")
law("between nodes an array of more bytes takes no less time, about",
	"time_ms >= 0.5 * below('bytes', 'time_ms').time_ms")
