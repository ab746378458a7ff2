-- torch_compile.lua: laws of its tables
tables("torch_compile", "dtype batch n d impl")
law("causal softmax is seven operations, in either pass",
	"fwd_operations == 7 and bwd_operations == 7")
law("alone, each operation is a kernel; joined, a pass has one",
	"fwd_kernels == (impl == 'alone' and 7 or 1) and bwd_kernels == fwd_kernels")
law("operations alone move 48 bytes of fp32 forward, 60 backward",
	"close(fwd_eager_MB, 1e-6 * batch * n ^ 2 * (dtype == 'fp32' and 48 or 44),",
	"0.03) and close(bwd_eager_MB, 1e-6 * batch * n ^ 2 * (dtype == 'fp32' and",
	"60 or 50), 0.03)")
law("a group reads and writes each element once, but backward long rows again",
	"impl == 'alone' or close(fwd_MB, 1e-6 * batch * n ^ 2 * (dtype == 'fp32'",
	"and 8 or 4), 0.03) and close(bwd_MB, (n > 16384 and 2.5 or 1.5) * fwd_MB,",
	"0.03)")
law("an operation alone moves what was counted for it",
	"impl ~= 'alone' or close(fwd_MB, fwd_eager_MB, 1e-6) and close(bwd_MB,",
	"bwd_eager_MB, 1e-6)")
law("the count of bytes does not depend on groups",
	"fwd_eager_MB == other{impl = 'jit'}.fwd_eager_MB and bwd_eager_MB ==",
	"other{impl = 'jit'}.bwd_eager_MB")
law("in a group no matrix holds what is in between",
	"impl ~= 'alone' or close(peak_MiB - other{impl = 'jit'}.peak_MiB, 4 * batch",
	"* n ^ 2 / 2 ^ 20, 0.05, 0.3)")
law("a compiled softmax holds eight arrays and two matrices",
	"impl ~= 'jit' or between(peak_MiB - (dtype == 'fp32' and 4 or 2) * (8 *",
	"batch * n * d + 2 * batch * n ^ 2) / 2 ^ 20, -0.3, 33)")
law("a warm start of attention is shorter than a cold one",
	"integer(compiled) and between(compiled, fwd_kernels, fwd_kernels +",
	"bwd_kernels) and warm_ms < cold_ms")
law("compiled attention's time grows with length",
	"impl:sub(1, 7) == 'pytorch' or scales('fwd_ms', 'n', 0, 2, gpu() and 1.5 or",
	"8) and scales('bwd_ms', 'n', 0, 2, gpu() and 1.5 or 8)")
law("compiled attention's backward pass takes a third to nine times its forward",
	"between(bwd_ms / fwd_ms, 0.33, 9)")
law("compiled attention is not faster than the peak by half",
	"4e-9 * batch * n ^ 2 * d / fwd_ms <= 1.5 * of('peaks', {quantity =",
	"dtype}).max")
tables("torch_compile-model", "size context batch precision impl")
law("alone, each operation of a step is a kernel, a sum of columns two",
	"impl ~= 'alone' or between(step_kernels, step_operations + 1,",
	"1.03 * step_operations)")
law("operations of a step alone move what was counted for them",
	"impl ~= 'alone' or close(step_MB, step_eager_MB, 1e-3)")
law("joined, a step has a sixth of the kernels and moves half of the bytes",
	"impl ~= 'jit' or 6 * step_kernels < step_operations and 2 * step_MB <",
	"step_eager_MB")
law("the operations of a step do not depend on groups",
	"step_operations == other{impl = 'jit'}.step_operations and step_eager_MB ==",
	"other{impl = 'jit'}.step_eager_MB")
law("a compiled step has the loss of operations done alone",
	"impl ~= 'alone' or loss == other{impl = 'jit'}.loss")
law("eager and fused steps have the loss of a compiled one, in bf16 to a quarter",
	"impl:sub(1, 7) == 'pytorch' or close(loss, other{impl = 'jit'}.loss,",
	"precision == 'bf16' and 0.25 or impl == 'fused' and 0.01 or 1e-3)")
law("what lies between operations of a group needs no memory",
	"impl ~= 'jit' or peak_MiB <= other{impl = 'alone'}.peak_MiB")
law("a warm start of a model is shorter than a cold one",
	"integer(compiled) and between(compiled, 5, 60) and warm_ms < cold_ms")
law("a compiled step has its parts",
	"impl:sub(1, 7) == 'pytorch' or close(step_ms, fwd_ms + bwd_ms + opt_ms,",
	"0.2, fwd_sd_ms + bwd_sd_ms + opt_sd_ms + step_sd_ms)")
law("compiled models are timed in one context", "fixed('context', 'status')")
tables("torch_compile-groups", "context batch precision number")
law("groups are counted", "number == 1 or number == before('status').number + 1")
law("a group moves no more than its operations would", "MB <= eager_MB")
law("one operation moves what it moves", "operations > 1 or MB == eager_MB")
law("a group has elements", "rows >= 1 and columns >= 1 and operations >= 1")
law("a group touches each of its elements",
	"MB * 1e6 >= 2 * rows * columns")
