-- leaderboard.lua: probes, errors, losses and steps of the large model
probe_rows = h200.leaderboard_probe{status="ok"}
probe_fixed = probe_rows{precision=each(probe_rows)[1].precision,
	deterministic="yes"}
probe_row = by(probe_fixed, "part, algorithms, copies")
probe_step = function(algorithms, copies) return probe_row("step", algorithms,
	copies).part_ms end
probe_part = function(algorithms, class) return sum(probe_fixed{copies="no",
	algorithms=algorithms}("part:find(class) == 1", {class=class}).part_ms) end
exact_first = each(leaderboard_errors{status="ok"})[1]
exact_of = by(leaderboard_errors, "precision, what, of")
exact_loss = exact_of("fp32", "loss", "batch")
exact_ratio = of("error/pytorch_error")
exact_same = leaderboard_errors{precision="fp32", what={"logits", "gradient"}}
exact_low = leaderboard_errors{beside={"autocast", "bf16"}, status="ok",
	what={"logits", "gradient"}}
large_layers = function(bytes, GB) return floor((GB*1e9/bytes - 2*large.V*large.C)
	/large_block) end
exact_P = 4*large_block + 2*large.V*large.C
taught = h200.leaderboard_learn{status="ok"}
taught_by = by(taught, "deterministic, step", "loss")
taught_last = taught_by("yes", max(taught.step))
taught_ln = log(large.V) + large.C/(large.C + large.V)
taught_off = max(taught{step=0}, "abs(loss - taught_ln)")
-- the step on two H100 by ZeRO-2 and by FSDP, at the pace of the slower GPU
narrow_by = by(on("h100x2").leaderboard{precision="bf16-state"},
	"strategy, deterministic")
narrow, narrow_fsdp = narrow_by("zero2", "yes"), narrow_by("fsdp", "yes")
narrow_atomic = narrow_by("zero2", "no")
narrow_probe = function(part, column)
	return map({"h100x2", "h100x2-1"}, "on(it).leaderboard_probe{copies='yes', \z
		deterministic='yes', algorithms='timed', part=part}[column]",
		{part=part, column=column})
end
narrow_step = max(narrow_probe("step", "part_ms"))
narrow_rate = min(narrow_probe("matmuls, forward", "TFLOP_per_s"))
narrow_over = large_state.early + large_kept - h100_GB
narrow_GB = of("drop_gate_up*large_GB + drop_qkv*6*large.T*large.C*1e-9")
narrow_again = of("narrow_GB(it)*large.C/narrow_rate")
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
step_kept = step_rows{precision="bf16-stream", strategy="zero2",
	deterministic="no"}
large_whole = function(t)                    -- milliseconds of the bars
	for name, ms in pairs(t) do t[name] = floor(ms + 0.5) end
	return t
end
large_bars = large_whole{Matmul=large_ms.blocks + large_ms.head,
	Least=(large_TF.fwd + large_TF.bwd)/rate("bf16")*1e3,
	Attention=large_ms.fwd + large_ms.bwd,
	Other=large_ms.elements + large_ms.loss, Adam=large_ms.adamw,
	Short=large_predicted, Class=class_best_2026,
	Probe=probe_step("timed", "yes"), ProbeMatmul=probe_part("timed", "matmuls"),
	ProbeAttention=probe_part("timed", "attention"),
	ProbeOther=probe_step("timed", "yes") - probe_part("timed", "matmuls")
	- probe_part("timed", "attention"), Step=step_fixed.step_ms,
	StepMatmul=step_fixed.linear_ms, StepAttention=step_fixed.attention_ms,
	StepOther=step_fixed.elementwise_ms, StepAdam=step_fixed.optimizer_ms,
	Bound=large_bound + large_ms.elements + large_ms.loss + large_ms.adamw}
large_bars.Scale = ("%.5f"):format(84/step_fixed.step_ms)
