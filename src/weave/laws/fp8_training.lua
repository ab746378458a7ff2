-- fp8_training.lua: laws of its tables
tables("fp8_training", "size context scaling gradient")
law("a ratio is one step over the other",
	"close(of_bf16, step_ms / bf16_ms, 1e-3)")
law("both formats start from the same loss, about",
	"between(loss / bf16_loss, 0.8, 1.25)")
law("a median step is no more than its phases and half again",
	"step_ms <= 2.5 * (fwd_ms + bwd_ms)")
tables("fp8_training-gemm", "size layer pass scaling gradient")
law("a ratio is one matmul over the other",
	"close(of_bf16, fp8_us / bf16_us, 1e-3)")
law("a rate is work over time",
	"close(fp8_TFlops, 2e-6 * m * n * k / fp8_us, 2e-3)")
tables("fp8_training-errors", "data left scaling")
law("a ratio is the measured error over the predicted one",
	"close(of_predicted, measured / predicted, 1e-2)")
law("errors are what the model of rounding predicts, about",
	"between(of_predicted, 0.6, 1.6)")
law("no format of eight bits is as exact as bf16",
	"left == 'bf16' or measured > 5 * other{left = 'bf16', scaling =",
	"'none'}.measured")
tables("fp8_training-learning", "size precision scaling gradient seed")
law("losses are not negative and below those of equal odds",
	"between(held_out_nats, 0, log(256)) and train_nats > 0")
law("FP8 is near bf16 from the same seed",
	"close(held_out_nats, other{precision = 'bf16', scaling = 'none', gradient =",
	"'none'}.held_out_nats, 0.1)")
