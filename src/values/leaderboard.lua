-- leaderboard.lua: probes, errors, losses and steps of the large model
probe_rows = h200.leaderboard_probe{status="ok"}
probe_precision = each(probe_rows)[1].precision
probe_row = function(part, algorithms, copies)
	return probe_rows{part=part, algorithms=algorithms, copies=copies,
		precision=probe_precision, deterministic="yes"}
end
probe_step = function(algorithms, copies)
	return probe_row("step", algorithms, copies).part_ms
end
probe_sum = function(algorithms, parts)
	local ms = 0
	for _, part in ipairs(parts) do
		ms = ms + probe_row(part, algorithms, "no").part_ms
	end
	return ms
end
probe_matmuls = function(algorithms)
	return probe_sum(algorithms, {"matmuls, forward",
		"matmuls, gradients of inputs", "matmuls, gradients of weights",
		"matmuls of the head"})
end
probe_attention = function(algorithms)
	return probe_sum(algorithms, {"attention, forward", "attention, backward"})
end

exact_first = each(leaderboard_errors{status="ok"})[1]
exact_of = function(precision, what, of, column)
	return leaderboard_errors{precision=precision, what=what, of=of}[column]
end
exact_loss = leaderboard_errors{precision="fp32", what="loss", of="batch"}
exact_low = leaderboard_errors{beside={"autocast", "bf16"}, status="ok"}
exact_ratios = function(rows, what)
	return map(rows{what=what}, function(r) return r.error/r.pytorch_error end)
end
exact_ratios32 = exact_ratios(leaderboard_errors{precision="fp32"},
	{"logits", "gradient"})
exact_fp32, exact_least = max(exact_ratios32), min(exact_ratios32)
exact_bf16 = max(exact_ratios(exact_low, {"logits", "gradient"}))
exact_moved = max(exact_ratios(exact_low(function(r)
	return r.of ~= "head" or r.precision ~= "bf16"
end), "update"))

exact_head = function(what)
	return exact_ratios(exact_low{precision="bf16", of="head"}, what)[1]
end
exact_gains = function(precision, column)
	return exact_of(precision, "update", "norms", column)
end
pytorch_low = function(what, of)
	return exact_of("bf16-state", what, of, "pytorch_error")
end
large_layers = function(bytes, GB)
	return math.floor((GB*1e9/bytes - 2*large.V*large.C)/large_block)
end
exact_P = 4*large_block + 2*large.V*large.C

taught = h200.leaderboard_learn{status="ok"}
taught_first = each(taught)[1]
taught_end = max(taught.step)
taught_by = function(deterministic, step)
	return taught{precision=taught_first.precision, deterministic=deterministic,
		step=step}.loss
end
-- the most by which the two runs differ at the same step
taught_differ = max(map(taught, function(r)
	return abs(r.loss - taught_by(taught_first.deterministic, r.step))
end))
taught_last = taught_by(taught_first.deterministic, taught_end)
taught_variance = 2*taught_first.d_model/(taught_first.d_model
	+ taught_first.vocabulary)
taught_ln = log(taught_first.vocabulary) + taught_variance/2
taught_off = max(map(taught{step=0}, function(r)
	return abs(r.loss - taught_ln)
end))
-- a bound: rounded up
taught_below = function(x, digits)
	return fixed(ceil(x*10^digits)/10^digits, digits)
end

-- the step on two H100 by ZeRO-2 and by FSDP, and the probe of each GPU
narrow_by = function(strategy, deterministic)
	return on("h100x2").leaderboard{precision="bf16-state", strategy=strategy,
		deterministic=deterministic}
end
narrow, narrow_fsdp = narrow_by("zero2", "yes"), narrow_by("fsdp", "yes")
narrow_atomic = narrow_by("zero2", "no")
narrow_streams = all(on("h100x2").leaderboard{precision="bf16-stream"},
	function(r) return r.status:find("^oom") ~= nil end)
narrow_on = function(machine)
	return on(machine).leaderboard_probe{copies="yes",
		deterministic="yes", algorithms="timed"}
end

-- a pair goes at the pace of its slower GPU
narrow_gpus = {narrow_on("h100x2"), narrow_on("h100x2-1")}
narrow_probe = narrow_gpus[1]{part="step"}.part_ms
	> narrow_gpus[2]{part="step"}.part_ms and narrow_gpus[1] or narrow_gpus[2]
narrow_step = narrow_probe{part="step"}.part_ms
narrow_rate = narrow_probe{part="matmuls, forward"}.TFLOP_per_s
narrow_over = large_state.early + large_kept - h100_GB
narrow_GB = function(r)
	return r.drop_gate_up*large_GB + r.drop_qkv*6*large.T*large.C*1e-9
end
narrow_again = function(r) return narrow_GB(r)*large.C/narrow_rate end
narrow_foreseen = narrow_step + large_again(narrow_over)
-- an early update is in the calls in which the queue is blocked
narrow_waits = function(r)
	return r.blocked_ms
		- (r.update == "early" and narrow_fsdp.optimizer_ms or 0)
end
narrow_sum = function(r)
	return narrow_step + narrow_again(r) + narrow_waits(r)
end
narrow_left = function(r) return r.step_ms - narrow_sum(r) end

step_rows = h200.leaderboard{status="ok"}
step_met = max(map(step_rows, function(r)
	return math.abs(r.peak_MiB/r.derived_MiB - 1)
end))
step_begins = all(step_rows, function(r)
	return math.abs(r.first_loss - taught_ln) < 0.05
end)
step_best = argmin(step_rows, "step_ms")
-- the fastest whose sums have a fixed order
step_fixed = argmin(step_rows{deterministic="yes"}, "step_ms")
step_masters = step_rows{precision="bf16-stream", strategy="zero2",
	deterministic="yes"}
step_MFU = function(r)
	return (r.TFLOP - r.layers*r.context^2*r.d_model*r.batch/r.ranks*1e-12)
		/r.step_ms*1e3/sheet.bf16
end

-- milliseconds of the bars
large_whole = function(x) return math.floor(x + 0.5) end
large_bars = {Matmul=large_whole(large_ms.blocks + large_ms.head),
	Least=large_whole((large_TF.fwd + large_TF.bwd)/rate("bf16")*1e3),
	Attention=large_whole(large_ms.fwd + large_ms.bwd),
	Other=large_whole(large_ms.elements + large_ms.loss),
	Adam=large_whole(large_ms.adamw), Short=large_whole(large_predicted),
	Class=class_best_2026, Probe=large_whole(probe_step("timed", "yes")),
	ProbeMatmul=large_whole(probe_matmuls("timed")),
	ProbeAttention=large_whole(probe_attention("timed")),
	ProbeOther=large_whole(probe_step("timed", "yes") - probe_matmuls("timed")
		- probe_attention("timed")),
	Step=large_whole(step_fixed.step_ms),
	StepMatmul=large_whole(step_fixed.linear_ms),
	StepAttention=large_whole(step_fixed.attention_ms),
	StepOther=large_whole(step_fixed.elementwise_ms),
	StepAdam=large_whole(step_fixed.optimizer_ms),
	Bound=large_whole(large_bound + large_ms.elements + large_ms.loss
		+ large_ms.adamw),
	Scale=("%.5f"):format(84/step_fixed.step_ms)}
