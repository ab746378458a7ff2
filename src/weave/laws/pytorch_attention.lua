-- pytorch_attention.lua: laws of its tables
tables("pytorch_attention", "dtype batch n d pass")
law("a forward pass leaves four arrays and P",
	"dtype ~= 'fp32' or close(before_MiB, (16 * batch * n * d + 4 * batch * n ^",
	"2) / 2 ^ 20, 0, 0.01)")
law("backward holds eight arrays and two matrices, or three",
	"pass == 'forward' and derived_MiB == before_MiB or pass == 'backward' and",
	"between((derived_MiB * 2 ^ 20 - 32 * batch * n * d) / (4 * batch * n ^ 2),",
	"1.8, 3.1)")
law("peaks of the backward pass are as derived",
	"pass == 'forward' or close(peak_MiB, derived_MiB, 0.01, 0.3)")
law("peaks of the forward pass hold one matrix more, or two",
	"pass == 'backward' or between((peak_MiB - before_MiB) * 2 ^ 20 / (4 * batch",
	"* n ^ 2), 0, 2.1)")
law("mean and least of up to a hundred passes",
	"0 < min_ms and min_ms <= ms + 1e-4 and ms - min_ms <= 9.9 * sd_ms + 2e-4")
law("attention's backward pass takes a half to eight times its forward",
	"pass == 'forward' or between(ms / other{pass = 'forward'}.ms, 0.5, 8)")
law("naive attention's time grows with length", "scales('ms', 'n', 0, 2, 2)")
law("naive attention's least time grows with length",
	"scales('min_ms', 'n', 0, 2, 2)")
law("naive attention is not faster than the peak by half",
	"4e-9 * batch * n ^ 2 * d / ms <= 1.5 * of('peaks', {quantity = dtype}).max")
law("naive attention's time grows with the head's width",
	"not gpu() or scales('ms', 'd', -1, 1, 2)")

tables("pytorch_attention-failing", "dtype batch d n order")
law("allocations are counted",
	"order == 1 or order == before('status').order + 1")
law("an allocation is as derived", "close(derived_MiB, MiB, 1e-3)")
law("all tensors but a workspace are arrays or matrices",
	"tensor == 'cuBLASLt workspace' or MiB == 4 * batch * n * d / 2 ^ 20 or MiB",
	"== 4 * batch * n ^ 2 / 2 ^ 20")
law("the total is what was allocated",
	"order == 1 and total_MiB == MiB or order > 1 and close(total_MiB,",
	"before('status').total_MiB + MiB, 0, 0.02)")
law("what is free is the rest, until the pool keeps what it freed",
	"order == last('status').order or free_MiB + total_MiB <=",
	"first('status').free_MiB + first('status').total_MiB + 0.02")
law("free memory does not grow",
	"order == 1 or free_MiB <= before('status').free_MiB")
law("what fails is larger than what is free",
	"order < last('status').order or MiB > free_MiB")
