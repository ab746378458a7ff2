-- leaderboard.lua: laws of the tables of one large step
tables("leaderboard leaderboard-fp8",
	"vocabulary d_model d_ff layers heads context batch precision " ..
	"head_tokens ranks strategy update transport sums recompute memory_MiB " ..
	"deterministic")
law("FLOPs of a large step",
	"close(TFLOP, (6 * (layers * (4 * d_model^2 + 3 * d_model * d_ff) +",
	"vocabulary * d_model) + 7 * layers * context * d_model) * batch * context /",
	"ranks / 1e12, 1e-4)")
law("the rate of a large step",
	"close(TFLOP_per_s, TFLOP / step_ms * 1e3, 0.02)")
law("no step is faster than the data sheet", "TFLOP_per_s < (gpu() and 989 or 9)")
law("the first loss is that of drawn weights",
	"close(first_loss, log(vocabulary) + d_model / (d_model + vocabulary), 0,",
	"0.05)")
law("the same batch is learned", "loss > 0 and loss < first_loss + 0.05")
law("strategies begin alike",
	"close(first_loss, first('vocabulary d_model layers context precision')",
	".first_loss, 1e-3)")
law("the peak of a large step is as derived, within five thousandths",
	"close(peak_MiB, derived_MiB, 0.005, 0.01)")
law("no more blocks drop than there are",
	"drop_qkv <= layers and drop_gate_up <= layers")
law("the classes make up a large step",
	"between((linear_ms + attention_ms + elementwise_ms + optimizer_ms) /",
	"step_ms, gpu() and 0.9 or 0.1, gpu() and 1.15 or 8)")
law("the phases make up a large step",
	"between((fwd_ms + bwd_ms + wait_ms + opt_ms) / step_ms, gpu() and 0.9 or",
	"0.1, gpu() and 1.15 or 8)")
law("a rank of a large step sends gradients and weights",
	"ranks == 1 or sent_MB > 0")
law("a step was measured", "steps >= 1 and integer(steps)")
law("a clock is held by the power limit for a part of the time",
	"capped >= 0 and capped <= 1")
law("power is energy over time",
	"close(watts, joules_per_step / step_ms * 1e3, 0.1)")
tables("leaderboard-probe",
	"vocabulary d_model d_ff layers heads context batch precision " ..
	"head_tokens ranks deterministic algorithms copies part")
law("FLOPs of matmuls of blocks",
	"not part:find('matmuls,') or close(TFLOP, 2 * layers * (4 * d_model^2 +",
	"3 * d_model * d_ff) * batch * context / ranks / 1e12, 1e-4)")
law("FLOPs of the head", "part ~= 'matmuls of the head' or close(TFLOP,",
	"6 * vocabulary * d_model * batch * context / ranks / 1e12, 1e-4)")
law("FLOPs of attention", "not part:find('attention') or close(TFLOP,",
	"(part:find('forward') and 2 or 5) * layers * context * d_model * batch *",
	"context / ranks / 1e12, 1e-4)")
law("the step has all FLOPs", "part ~= 'step' or close(2 * TFLOP, total('TFLOP',",
	"'layers context d_model precision deterministic algorithms copies'), 1e-4)")
law("a part takes no longer than the step",
	"part_ms <= other{part = 'step'}.part_ms * 1.0001")
law("the rate of a part", "close(TFLOP_per_s, TFLOP / part_ms * 1e3, 0.02)")
law("no part is faster than the data sheet",
	"TFLOP_per_s < (gpu() and 989 or 9)")
tables("leaderboard-errors",
	"vocabulary d_model d_ff layers heads context batch head_tokens " ..
	"precision what of")
law("errors are PyTorch's, half as much again at most",
	"what == 'loss' or error <= (precision == 'fp32' and what == 'update' and",
	"4 or 1.5) * pytorch_error")
law("a loss is PyTorch's, or as near as its format is fine",
	"what ~= 'loss' or error <= max(1.5 * pytorch_error,",
	"precision == 'fp32' and 1e-6 or 2e-3)")
law("errors of a pass are the format's",
	"what == 'loss' or what == 'update' or between(error,",
	"precision == 'fp32' and 1e-8 or 1e-4, precision == 'fp32' and 1e-5 or 0.1)")
law("a model that does not move misses its update, no more",
	"what ~= 'update' or error > 0 and error < 1.2")
law("PyTorch rounds, too", "what == 'loss' or pytorch_error > 1e-8")
law("with bf16 weights, masters do not change the first pass",
	"precision ~= 'bf16-state' or what == 'update' or",
	"close(error, other{precision = 'bf16-stream'}.error, 0.02)")
law("masters keep what is added to them",
	"precision ~= 'bf16-state' or what ~= 'update' or",
	"error > other{precision = 'bf16-stream'}.error")
tables("leaderboard-learn",
	"vocabulary d_model d_ff layers heads context batch precision " ..
	"head_tokens ranks strategy update transport sums recompute memory_MiB " ..
	"deterministic step")
law("a text begins at the loss of drawn weights",
	"step > 0 or close(loss, log(vocabulary) + d_model / (d_model +",
	"vocabulary), 0, (2 * d_model / (d_model + vocabulary))^0.5)")
law("a text is learned",
	"step < 20 or loss < first('precision strategy deterministic').loss - 1")
law("no loss is over the first",
	"loss < first('precision strategy deterministic').loss + 0.1")
law("precisions learn alike", "close(loss, first('step strategy').loss, 0, 0.3)")
law("all steps are there",
	"step == 0 or step == before('precision strategy deterministic').step + 1")
