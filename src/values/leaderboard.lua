-- leaderboard.lua: probes, errors, losses and steps of the large model
probe_rows = h200.leaderboard_probe{status="ok"}
probe_row = by(probe_rows{precision=each(probe_rows)[1].precision,
	deterministic="yes"}, "part, algorithms, copies")
probe_step = function(algorithms, copies) return probe_row("step", algorithms,
	copies).part_ms end
probe_sum = function(algorithms, parts)
	return sum(probe_row(parts, algorithms, "no").part_ms)
end
probe_matmuls = function(algorithms)
	return probe_sum(algorithms, {"matmuls, forward",
		"matmuls, gradients of inputs", "matmuls, gradients of weights",
		"matmuls of the head"})
end
probe_attention = function(algorithms) return probe_sum(algorithms,
	{"attention, forward", "attention, backward"}) end
exact_first = each(leaderboard_errors{status="ok"})[1]
exact_of = function(precision, what, of, column) return leaderboard_errors{
	precision=precision, what=what, of=of}[column] end
exact_loss = leaderboard_errors{precision="fp32", what="loss", of="batch"}
exact_low = leaderboard_errors{beside={"autocast", "bf16"}, status="ok"}
exact_ratios = function(rows, what) return map(rows{what=what},
	"error/pytorch_error") end
exact_ratios32 = exact_ratios(leaderboard_errors{precision="fp32"},
	{"logits", "gradient"})
exact_fp32, exact_least = max(exact_ratios32), min(exact_ratios32)
exact_moved = max(exact_ratios(exact_low("of ~= 'head' or precision ~= 'bf16'"),
	"update"))
exact_head = function(what)
	return exact_ratios(exact_low{precision="bf16", of="head"}, what)[1]
end
exact_gains = function(precision, column) return exact_of(precision, "update",
	"norms", column) end
pytorch_low = function(what, of) return exact_of("bf16-state", what, of,
	"pytorch_error") end
large_layers = function(bytes, GB) return floor((GB*1e9/bytes - 2*large.V*large.C)
	/large_block) end
exact_P = 4*large_block + 2*large.V*large.C
taught = h200.leaderboard_learn{status="ok"}
taught_first = each(taught)[1]
taught_end = max(taught.step)
taught_by = by(taught{precision=taught_first.precision}, "deterministic, step",
	"loss")
-- the most by which the two runs differ at the same step
taught_differ = max(taught, "abs(loss - taught_by(taught_first.deterministic, \z
	step))")
taught_last = taught_by(taught_first.deterministic, taught_end)
taught_variance = 2*taught_first.d_model
	/(taught_first.d_model + taught_first.vocabulary)
taught_ln = log(taught_first.vocabulary) + taught_variance/2
taught_off = max(taught{step=0}, "abs(loss - taught_ln)")
-- a bound: rounded up
taught_below = function(x, digits) return fixed(ceil(x*10^digits)/10^digits,
	digits) end
-- the step on two H100 by ZeRO-2 and by FSDP, and the probe of each GPU
narrow_by = by(on("h100x2").leaderboard{precision="bf16-state"},
	"strategy, deterministic")
narrow, narrow_fsdp = narrow_by("zero2", "yes"), narrow_by("fsdp", "yes")
narrow_atomic = narrow_by("zero2", "no")
narrow_streams = all(on("h100x2").leaderboard{precision="bf16-stream"},
	"status:find('^oom') ~= nil")
narrow_on = function(machine) return on(machine).leaderboard_probe{copies="yes",
	deterministic="yes", algorithms="timed"} end
-- a pair goes at the pace of its slower GPU
narrow_gpus = {narrow_on("h100x2"), narrow_on("h100x2-1")}
narrow_probe = narrow_gpus[1]{part="step"}.part_ms
	> narrow_gpus[2]{part="step"}.part_ms and narrow_gpus[1] or narrow_gpus[2]
narrow_step = narrow_probe{part="step"}.part_ms
narrow_rate = narrow_probe{part="matmuls, forward"}.TFLOP_per_s
narrow_over = large_state.early + large_kept - h100_GB
narrow_GB = of("drop_gate_up*large_GB + drop_qkv*6*large.T*large.C*1e-9")
narrow_again = function(r) return narrow_GB(r)*large.C/narrow_rate end
narrow_foreseen = narrow_step + large_again(narrow_over)
-- an early update is in the calls in which the queue is blocked
narrow_waits = of("blocked_ms - (update == 'early' and narrow_fsdp.optimizer_ms \z
	or 0)")
narrow_sum = of("narrow_step + narrow_again(it) + narrow_waits(it)")
step_rows = h200.leaderboard{status="ok"}
step_best = argmin(step_rows, "step_ms")
-- the fastest whose sums have a fixed order
step_fixed = argmin(step_rows{deterministic="yes"}, "step_ms")
step_masters = step_rows{precision="bf16-stream", strategy="zero2",
	deterministic="yes"}
large_whole = function(x) return floor(x + 0.5) end  -- milliseconds of the bars
large_bars = {Matmul=large_whole(large_ms.blocks + large_ms.head),
	Least=large_whole((large_TF.fwd + large_TF.bwd)/rate("bf16")*1e3),
	Attention=large_whole(large_ms.fwd + large_ms.bwd),
	Other=large_whole(large_ms.elements + large_ms.loss),
	Adam=large_whole(large_ms.adamw), Short=large_whole(large_predicted),
	Class=class_best_2026, Probe=large_whole(probe_step("timed", "yes")),
	ProbeMatmul=large_whole(probe_matmuls("timed")),
	ProbeAttention=large_whole(probe_attention("timed")),
	ProbeOther=large_whole(probe_step("timed", "yes") - probe_matmuls("timed")
	- probe_attention("timed")), Step=large_whole(step_fixed.step_ms),
	StepMatmul=large_whole(step_fixed.linear_ms),
	StepAttention=large_whole(step_fixed.attention_ms),
	StepOther=large_whole(step_fixed.elementwise_ms),
	StepAdam=large_whole(step_fixed.optimizer_ms),
	Bound=large_whole(large_bound + large_ms.elements + large_ms.loss
	+ large_ms.adamw), Scale=("%.5f"):format(84/step_fixed.step_ms)}
