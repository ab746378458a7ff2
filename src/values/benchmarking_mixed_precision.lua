-- values of [](#benchmarking_mixed_precision), (a): types
toy_types = benchmarking_mixed_precision_types
toy_is_asked = {["fc1.weight"]=true, ["fc1 output"]=true, ["relu output"]=true,
	["ln output"]=true, logits=true, loss=true, ["grad of logits"]=true,
	["grad of ln output"]=true, ["grad of fc1 output"]=true,
	["grad of fc1.weight"]=true, ["grad of ln.weight"]=true}
type16 = by(toy_types, "tensor", "fp16")
toy_follows = function(name) return type16("grad of " .. name) == type16(name) end
types_are = function(type, names) return all(names, "type16(it) == type",
	{type=type}) end
types_known = types_are("fp16", {"fc1 output", "relu output", "logits"})
	and types_are("fp32", {"fc1.weight", "ln output", "loss",
	"grad of fc1.weight", "grad of ln.weight"})
same_narrow = all(toy_types, "(fp16 == 'fp16') == (bf16 == 'bf16')")
-- (b): relative errors of layer norm's output with one step narrow
ln_rows = benchmarking_mixed_precision_layernorm
error_text = function(x)
	if x == "nan" then return "—" end
	return x >= 0.01 and ratio(x, 2) or sci(x, 2)
end
ln_row = by(ln_rows, "type, narrow")
error_bf16 = function(step, column)
	return error_text(ln_row("bf16", step)[column])
end
ln_unit16 = ln_row("fp16", "input").one_rounding
ln_unitb = ln_row("bf16", "input").one_rounding
-- is the error of these steps on these rows at most one rounding?
ln_below = function(steps, columns)
	return all(columns, "all(rows, 'it[c] <= one_rounding', {c=it})",
		{rows=ln_rows{type={"fp16", "bf16"}, narrow=steps}})
end
ln_lost = function(step) return near(ln_row("fp16", step).large, 1, 0.01) end
ln_var16 = ln_row("fp16", "variance").ordinary
ln_varb = ln_row("bf16", "variance").ordinary
lost_b = 1 - 1/(1 + ln_varb)^2
pairs_offset = ln_row("bf16", "mean, in pairs").offset
ln_tiny16 = ln_row("fp16", "output").tiny/ln_unit16
ln_in16, ln_inb = ln_row("fp16", "input").offset, ln_row("bf16", "input").offset
ln_eps16 = ln_row("fp16", "epsilon").tiny
worse_b = ln_varb/ln_var16
-- (c): the prediction, from the classes of the fused step in fp32
gemm_peak = by(on("h100").peaks, "quantity", "value")
gemm_gain = function(q) return gemm_peak(q)/gemm_peak("fp32") end
split32 = on("h100").benchmarking_script_split{precision="fp32", status="ok"}
passes_ms = of("linear_ms + attention_ms + elementwise_ms")
bf16_bounds = map(split32, "passes_ms(it)/(linear_ms/gemm_gain('bf16') \z
	+ attention_ms/3 + elementwise_ms/2)")
linear_parts = map(split32, "linear_ms/passes_ms(it)")
in_fp32 = by(benchmarking_mixed_precision{precision="fp32"}, "size")
mixed_rows = on("h100").benchmarking_mixed_precision{status="ok"}
mixed_cell = function(size, precision, pass)
	return pm(mixed_rows{size=size, precision=precision}, pass)
end
-- a value in fp32 over that under a policy, size by size
speedups = function(rows, precision, value)
	return map(rows{precision=precision}, "value(like(exact, 'size'))/value(it)",
		{exact=rows{precision="fp32"}, value=of(value)})
end
gain_fwd = speedups(mixed_rows, "bf16", "fwd_ms")
gain_bwd = speedups(mixed_rows, "bf16", "bwd_ms")
gain_both = speedups(mixed_rows, "bf16", both_of)
nsizes = #gain_fwd
over_tf32 = map(mixed_rows{precision="bf16"}, "both_of(mixed_rows{size=size, \z
	precision='tf32'})/both_of(it)")
all_grow = all({"tf32", "fp16", "bf16"}, "all({'fwd_ms', 'bwd_ms', 'step_ms'}, \z
	[[increasing(speedups(mixed_rows, policy, it))]], {policy=it})")
step_less = all(mixed_rows{precision="bf16"},
	"like(mixed_rows{precision='fp32'}, 'size').step_ms/step_ms \z
	< both_of(like(mixed_rows{precision='fp32'}, 'size'))/both_of(it)")
near_bound = map({1, 2, 3, 4, 5}, "gain_both[it]/bf16_bounds[it]")
mixed_ten = on("h100").benchmarking_mixed_precision{size="10B"}
mixed_alone = on("h100").benchmarking_script_forward{size="10B", context=512}
fp16_steps = map(mixed_rows{precision="bf16"}, "mixed_rows{size=size, \z
	precision='fp16'}.step_ms/step_ms - 1")
peak_gains = speedups(mixed_rows, "bf16", "peak_MiB")
-- the largest relative difference to speed-ups of two other processes
other_runs = {on("h100").benchmarking_script{context=512, fusion="fused",
	status="ok"}, on("h100").pytorch_peers{impl="ours", status="ok"}}
apart = function(value)
	local list, here = {}, speedups(mixed_rows, "bf16", value)
	for _, t in ipairs(other_runs) do
		for i, g in ipairs(speedups(t, "bf16", value)) do
			table.insert(list, abs(g/here[i] - 1))
		end
	end
	return max(list)
end
most_apart = max(apart("fwd_ms"), apart("bwd_ms"))
