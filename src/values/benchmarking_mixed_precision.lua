-- values of [](#benchmarking_mixed_precision), (a): types
toy_types = benchmarking_mixed_precision_types
toy_is_asked = {}
for _, name in ipairs {"fc1.weight", "fc1 output", "relu output", "ln output",
	"logits", "loss", "grad of logits", "grad of ln output",
	"grad of fc1 output", "grad of fc1.weight", "grad of ln.weight"} do
	toy_is_asked[name] = true
end
type16 = function(name) return toy_types{tensor=name}.fp16 end
toy_follows = function(name) return type16("grad of " .. name) == type16(name) end
types_are = function(type, names)
	for _, name in ipairs(names) do
		if type16(name) ~= type then return false end
	end
	return true
end
types_known = types_are("fp16", {"fc1 output", "relu output", "logits"})
	and types_are("fp32", {"fc1.weight", "ln output", "loss",
		"grad of fc1.weight", "grad of ln.weight"})
gradients_follow = toy_follows("logits") and toy_follows("ln output")
	and toy_follows("relu output") and toy_follows("fc1 output")
labels_true = all(toy_types, function(t)
	return t.fp16 == t.fp16_fits and t.bf16 == t.bf16_fits
		and t.fp32 == t.fp32_fits
end)
same_narrow = all(toy_types, function(t)
	return (t.fp16 == "fp16") == (t.bf16 == "bf16")
end)

pytorch_agrees = all(on("h100").benchmarking_mixed_precision_types, function(t)
	return t.pytorch_fp16 == t.fp16 and t.pytorch_bf16 == t.bf16
end)

-- (b): relative errors of layer norm's output with one step narrow
ln_rows = benchmarking_mixed_precision_layernorm
error_text = function(x)
	if x == "nan" then return "—" end
	return x >= 0.01 and ratio(x, 2) or sci(x, 2)
end
ln_row = function(type, step) return ln_rows{type=type, narrow=step} end
error_bf16 = function(step, column)
	return error_text(ln_row("bf16", step)[column])
end
ln_unit16 = ln_row("fp16", "input").one_rounding
ln_unitb = ln_row("bf16", "input").one_rounding
-- is the error of these steps on these rows at most one rounding?
ln_below = function(steps, columns)
	return all(ln_rows{type={"fp16", "bf16"}, narrow=steps}, function(r)
		for _, c in ipairs(columns) do
			if not (r[c] <= r.one_rounding) then return false end
		end
		return true
	end)
end
ln_harmless = ln_below({"deviation", "root", "output"},
	{"ordinary", "large", "offset"})
pairs_harmless = ln_below({"variance, in pairs"}, {"ordinary"})
edges_fit = ln_below({"input and output"}, {"ordinary", "large"})
ln_lost = function(step) return near(ln_row("fp16", step).large, 1, 0.01) end
ln_range16 = ln_lost("square") and ln_lost("variance") and ln_lost("epsilon")
	and ln_lost("variance, in pairs")
ln_range_b = all(ln_rows{type="bf16", narrow={"square", "variance", "epsilon"}},
	function(r) return r.large < 1.5*r.ordinary end)
overflow16 = ln_row("fp16", "mean").offset == "nan"
	and ln_row("fp16", "mean, in pairs").offset == "nan"
ln_var16 = ln_row("fp16", "variance").ordinary
ln_varb = ln_row("bf16", "variance").ordinary
lost_b = 1 - 1/(1 + ln_varb)^2
pairs_offset = ln_row("bf16", "mean, in pairs").offset
ln_tiny16 = ln_row("fp16", "output").tiny/ln_unit16
ln_tinyb = ln_row("bf16", "output").tiny/ln_unitb
ln_in16, ln_inb = ln_row("fp16", "input").offset, ln_row("bf16", "input").offset
as_predicted = near(ln_in16, 2^-4/sqrt(12), 0.05)
	and near(ln_inb, 2^-1/sqrt(12), 0.05)
ln_eps16 = ln_row("fp16", "epsilon").tiny
ln_epsb = ln_row("bf16", "epsilon").tiny
worse_b = ln_varb/ln_var16
bf16_differs = ln_unitb == 8*ln_unit16 and worse_b > 8 and ln_lost("square")
	and ln_row("bf16", "square").large < ln_unitb

-- (c): the prediction, from the classes of the fused step in fp32
gemm_peaks = on("h100").peaks
gemm_peak = function(q) return gemm_peaks{quantity=q}.value end
gemm_gain = function(q) return gemm_peak(q)/gemm_peak("fp32") end
split32 = on("h100").benchmarking_script_split{precision="fp32", status="ok"}
passes_ms = function(r) return r.linear_ms + r.attention_ms + r.elementwise_ms end
bf16_bounds = map(split32, function(r)
	return passes_ms(r)/(r.linear_ms/gemm_gain("bf16") + r.attention_ms/3
		+ r.elementwise_ms/2)
end)
linear_parts = map(split32, function(r) return r.linear_ms/passes_ms(r) end)

in_fp32 = function(size)
	return benchmarking_mixed_precision{size=size, precision="fp32"}
end

mixed_rows = on("h100").benchmarking_mixed_precision{status="ok"}
mixed_cell = function(size, precision, pass)
	local r = mixed_rows{size=size, precision=precision}
	return pm(r[pass .. "_ms"], r[pass .. "_sd_ms"])
end
-- a value in fp32 over that under a policy, size by size
speedups = function(t, precision, value)
	local list = {}
	for _, b in ipairs(each(t{precision=precision})) do
		for _, a in ipairs(each(t{precision="fp32"})) do
			if a.size == b.size then table.insert(list, value(a)/value(b)) end
		end
	end
	return list
end
fwd_of = function(r) return r.fwd_ms end
bwd_of = function(r) return r.bwd_ms end
both_of = function(r) return r.fwd_ms + r.bwd_ms end
step_of = function(r) return r.step_ms end
gain_fwd = speedups(mixed_rows, "bf16", fwd_of)
gain_bwd = speedups(mixed_rows, "bf16", bwd_of)
gain_both = speedups(mixed_rows, "bf16", both_of)
nsizes = #gain_fwd
over_tf32 = map(mixed_rows{precision="bf16"}, function(r)
	return both_of(mixed_rows{size=r.size, precision="tf32"})/both_of(r)
end)
all_grow = true
for _, policy in ipairs {"tf32", "fp16", "bf16"} do
	for _, value in ipairs {fwd_of, bwd_of, step_of} do
		all_grow = all_grow and increasing(speedups(mixed_rows, policy, value))
	end
end
step_less = all(mixed_rows{precision="bf16"}, function(r)
	local a = mixed_rows{size=r.size, precision="fp32"}
	return a.step_ms/r.step_ms < both_of(a)/both_of(r)
end)
near_bound = {}
for i, gained in ipairs(gain_both) do near_bound[i] = gained/bf16_bounds[i] end
within_bound = max(near_bound) < 1
ends_apart = min(near_bound) == near_bound[1]
	and max(near_bound) == near_bound[nsizes]
mixed_ten = on("h100").benchmarking_mixed_precision{size="10B"}
mixed_alone = on("h100").benchmarking_script_forward{size="10B", context=512}
mixed_ten_gain = mixed_alone{precision="fp32"}.fwd_med_ms
	/mixed_alone{precision="bf16"}.fwd_med_ms

fp16_steps = map(mixed_rows{precision="bf16"}, function(b)
	return mixed_rows{size=b.size, precision="fp16"}.step_ms/b.step_ms - 1
end)
peak_gains = speedups(mixed_rows, "bf16", function(r) return r.peak_MiB end)
memory_turns = peak_gains[1] > 1 and peak_gains[nsizes] < 1

-- the largest relative difference to speed-ups of two other processes
other_runs = {on("h100").benchmarking_script{context=512, fusion="fused",
	status="ok"}, on("h100").pytorch_peers{impl="ours", status="ok"}}
apart = function(value)
	local worst, here = 0, speedups(mixed_rows, "bf16", value)
	for _, t in ipairs(other_runs) do
		for i, g in ipairs(speedups(t, "bf16", value)) do
			worst = max(worst, abs(g/here[i] - 1))
		end
	end
	return worst
end
most_apart = max(apart(fwd_of), apart(bwd_of))
