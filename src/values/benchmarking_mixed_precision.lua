-- values of [](#benchmarking_mixed_precision), (a): types
toy_types = benchmarking_mixed_precision_types
type16 = by(toy_types, "tensor", "fp16")
-- (b): relative errors of layer norm's output with one step narrow
ln_rows = benchmarking_mixed_precision_layernorm
error_text = of("it == 'nan' and '—' or it >= 0.01 and ratio(it, 2) \z
	or sci(it, 2)")
ln_row = by(ln_rows, "type, narrow")
ln_unit16 = ln_row("fp16", "input").one_rounding
ln_unitb = ln_row("bf16", "input").one_rounding
ln_lost = function(step) return near(ln_row("fp16", step).large, 1, 0.01) end
ln_var16 = ln_row("fp16", "variance").ordinary
ln_varb = ln_row("bf16", "variance").ordinary
lost_b = 1 - 1/(1 + ln_varb)^2

gemm_gain = function(q) return rate(q)/rate("fp32") end
split32 = on("h100").benchmarking_script_split{precision="fp32", status="ok"}
passes_ms = of("linear_ms + attention_ms + elementwise_ms")
bf16_bounds = map(split32, "passes_ms(it)/(linear_ms/gemm_gain('bf16') \z
	+ attention_ms/3 + elementwise_ms/2)")
linear_parts = map(split32, "linear_ms/passes_ms(it)")
mixed_rows = on("h100").benchmarking_mixed_precision{status="ok"}
mixed_of = by(mixed_rows, "size, precision")
speedups = function(precision, value)
	return map(mixed_rows{precision=precision}, "value(mixed_of(size, 'fp32')) \z
		/value(it)", {value=of(value)})
end
gain_fwd, gain_bwd = speedups("bf16", "fwd_ms"), speedups("bf16", "bwd_ms")
gain_both = speedups("bf16", both_of)
all_grow = all({"tf32", "fp16", "bf16"}, "all({'fwd_ms', 'bwd_ms', 'step_ms'}, \z
	[[increasing(speedups(policy, it))]], {policy=it})")
near_bound = map({1, 2, 3, 4, 5}, "gain_both[it]/bf16_bounds[it]")
