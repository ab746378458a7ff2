-- fp8_training.lua: laws of its tables
tables("fp8_training", "size context scaling gradient")
law("a step in FP8 over one in bf16 is their ratio",
	"close(of_bf16, step_ms / bf16_ms, 1e-3)")
law("FP8 and bf16 have about the same loss",
	"between(loss / bf16_loss, 0.8, 1.25)")
law("a step in FP8 is no more than its phases and half again",
	"step_ms <= 2.5 * (fwd_ms + bwd_ms)")
tables("fp8_training-gemm", "size layer pass scaling gradient")
law("a matmul in FP8 over one in bf16 is their ratio",
	"close(of_bf16, fp8_us / bf16_us, 1e-3)")
law("a rate in FP8 is work over time",
	"close(fp8_TFlops, 2e-6 * m * n * k / fp8_us, 2e-3)")
law("no matmul is faster than the peak of its format by a fifth",
	"not gpu() or fp8_TFlops <= 1.2 * of('peaks', {quantity = 'fp8'}).max and",
	"bf16_TFlops <= 1.2 * of('peaks', {quantity = 'bf16'}).max")
law("a cast is not faster than a copy by half, but for what L2 holds",
	"not gpu() or cast_GBps <= 1.5 * of('peaks', {quantity = 'copy'}).max")
tables("fp8_training-errors", "data left scaling")
law("a measured error over the predicted one is their ratio",
	"close(of_predicted, measured / predicted, 1e-2)")
law("errors of matmuls are about what rounding predicts",
	"between(of_predicted, 0.6, 1.6)")
law("no format of eight bits is as exact as bf16",
	"left == 'bf16' or measured > 5 * other{left = 'bf16', scaling =",
	"'none'}.measured")
tables("fp8_training-learning", "size precision scaling gradient seed")
law("losses in FP8 are below those of equal odds",
	"between(held_out_nats, 0, log(256)) and train_nats > 0")
law("FP8 is near bf16 from the same seed",
	"close(held_out_nats, other{precision = 'bf16', scaling = 'none', gradient =",
	"'none'}.held_out_nats, 0.1)")
tables("fp8_training-peers", "size context impl precision")
law("a step beside PyTorch's takes as long as in its own table",
	"impl ~= 'ours' or precision ~= 'fp8' or close(step_ms, of('fp8_training',",
	"{size = size, context = context, scaling = 'tensor-delayed', gradient =",
	"'e5m2'}).step_ms, 0.2)")
law("our two formats learn alike",
	"impl ~= 'ours' or between(loss / other{precision = 'bf16'}.loss, 0.8, 1.25)")
