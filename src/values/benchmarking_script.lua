-- values of [](#benchmarking_script): bounds of a fused step by class, in ms
split = on("h100").benchmarking_script_split
top = on("h100").peaks
copy = top{quantity="copy"}.value                           -- GB/s
h100_MiB = tonumber(meta(on("h100").peaks, "memory_MiB"))

r_of = function(size, precision)
	return split{size=size, precision=precision}
end

linear_bound = function(r)
	return r.linear_GFLOP/top{quantity=r.precision}.value
end

-- seven matmuls, half of each, in fp32 three of fp16 for one
attention_flops_ms = function(r)
	local fp32 = r.precision == "fp32"
	return r.attention_GFLOP*7/12*(fp32 and 3 or 1)
		/top{quantity=fp32 and "fp16" or "bf16"}.value
end
-- twelve arrays (B, T, C), and RoPE's reading and writing of two
attention_bytes_ms = function(r)
	return 16*r.attention_GFLOP*1e3/12/r.context/copy
		*(r.precision == "bf16" and 2 or 4)
end
attention_bound = function(r)
	return math.max(attention_flops_ms(r), attention_bytes_ms(r))
end
bytes_bind = all(split, function(r)
	return attention_bytes_ms(r) > attention_flops_ms(r)
end)

-- norms 60 C and SwiGLU 18 F bytes a token in bf16; in fp32 72 C and 36 F
element_bound = function(r)
	local s, low = shapes[r.size], r.precision == "bf16"
	return 4*r.context*s.L*((low and 60 or 72)*s.C + (low and 18 or 36)*s.F)
		/copy*1e-6
end
update_bound = function(r)
	return r.parameters*(r.precision == "bf16" and 30 or 28)/copy*1e-6
end
step_bound = function(r)
	return linear_bound(r) + attention_bound(r) + element_bound(r)
		+ update_bound(r)
end
expected_gain = function(size)
	return step_bound(r_of(size, "fp32"))/step_bound(r_of(size, "bf16"))
end

bench = on("h100").benchmarking_script
good = bench{status="ok"}
half = good{context=512}
eager = half{precision="bf16", fusion="eager"}
fast = half{precision="bf16", fusion="fused"}
exact = half{precision="fp32", fusion="fused"}
exact_eager = half{precision="fp32", fusion="eager"}
short = good{precision="bf16", fusion="fused", context=128}
long = good{precision="bf16", fusion="fused", context=1024}

phase = function(r, name) return pm(r[name .. "_ms"], r[name .. "_sd_ms"]) end
cell = function(size, context, precision, fusion)
	local r = bench{size=size, context=context, precision=precision,
		fusion=fusion}
	return r.status == "ok" and fixed(r.step_med_ms, 1) or "oom"
end

backward_largest = all(half, function(r)
	return (r.precision == "fp32") ~= (r.fusion == "eager")
		or r.bwd_ms > r.fwd_ms and r.bwd_ms > r.opt_ms
end)
back_over_forward = map(exact, function(r) return r.bwd_ms/r.fwd_ms end)
back_over_low = map(fast, function(r) return r.bwd_ms/r.fwd_ms end)
opt_halved = all(short, function(r)
	local l = long{size=r.size}
	return r.opt_ms/r.step_ms > 2*l.opt_ms/l.step_ms
end)
opt_constant = all(good, function(r)
	return near(r.opt_ms, good{size=r.size, context=512, precision=r.precision,
		fusion=r.fusion}.opt_ms, 0.06)
end)

passes_grow = function(size)
	local a, b = short{size=size}, long{size=size}
	return (b.fwd_ms + b.bwd_ms)/(a.fwd_ms + a.bwd_ms)
end
growth = map(short, function(r) return passes_grow(r.size) end)

failed = bench(function(r) return r.size ~= "10B" and r.status ~= "ok" end)
failed_is = failed.size == "2.7B" and failed.context == 1024
	and failed.precision == "fp32" and failed.fusion == "eager"
	and failed.status:find("oom: attn.softmax", 1, true) == 1
fits = good{size="2.7B", context=1024, precision="fp32", fusion="fused"}
ten = bench{size="10B"}
at_moments = function(r)
	return r.status:find("oom: adamw m", 1, true) == 1
end
ten_forward = function(precision)
	return on("h100").benchmarking_script_forward{context=512,
		precision=precision}.fwd_ms
end

spread_of = function(r) return r.step_sd_ms/r.step_ms end
spread = map(good, spread_of)
worst = good(function(r) return spread_of(r) == max(spread) end)
two_runs = function(size)
	return {fast{size=size}.step_med_ms, r_of(size, "bf16").step_ms}
end
rerun = map(split, function(r)
	local b = half{size=r.size, precision=r.precision, fusion="fused"}
	return abs(r.step_ms/b.step_med_ms - 1)
end)
phase_spread = function(name)
	return median(map(good, function(r)
		return r[name .. "_sd_ms"]/r[name .. "_ms"]
	end))
end
optimizer_least = phase_spread("opt") < phase_spread("fwd")/4
	and phase_spread("opt") < phase_spread("bwd")/4

gain = function(of, over)
	return map(of, function(r)
		return over{size=r.size}.step_med_ms/r.step_med_ms
	end)
end
gain_bf16, gain_bf16_eager = gain(fast, exact), gain(eager, exact_eager)
gain_fused, gain_fused_fp32 = gain(fast, eager), gain(exact, exact_eager)
linear_gain = function(size)
	return r_of(size, "fp32").linear_ms/r_of(size, "bf16").linear_ms
end
linear_part_fp32 = function(size)
	return r_of(size, "fp32").linear_ms/r_of(size, "fp32").step_ms
end
both_grow = linear_gain("2.7B") > 1.1*linear_gain("small")
	and increasing(map(fast, function(r) return linear_part_fp32(r.size) end))
launched, fused_launches = eager{size="small"}.kernels, fast{size="small"}.kernels
launching_ms = launched*rate("launch")/1e3

-- first steps of a process
steps = on("h100").benchmarking_script_steps
first = steps{start="cold", step=1}
all_first = steps{start="kernels first", step=1}
steady = median(steps{start="cold", step=function(s) return s > 4 end}.step_ms)
rest = steps{start="cold", step=function(s) return s > 1 end}
excess_ms = first.step_ms - steady
known_ms = first.choice_ms + first.library_ms + first.alloc_ms
late_forward = (first.fwd_ms - steps{start="cold", step=5}.fwd_ms)
	/(first.step_ms - steps{start="cold", step=5}.step_ms)
mostly_choice = first.choice_ms > first.library_ms
	and first.choice_ms > first.alloc_ms
nothing_after = max(rest.alloc_ms) == 0 and max(rest.library_ms) == 0
	and max(rest.choice_ms) == 0
load_part = all_first.library_ms/all_first.step_ms
loads = all_first.step_ms > 4*first.step_ms and load_part > 0.8
	and near(all_first.choice_ms, first.choice_ms, 0.3)

-- fresh processes after 0, 1, 2 and 5 warm-up steps
warm = on("h100").benchmarking_script_warmup
warm_cell = function(size, n)
	local r = warm{size=size, warmup=n}
	return pm(r.step_ms, r.step_sd_ms)
end
warm_first = function(n)
	return map(warm{warmup=n}, function(r) return r.first_ms/r.step_med_ms end)
end
warm_sd = function(n)
	return map(warm{warmup=n}, function(r) return r.step_sd_ms/r.step_med_ms end)
end
extra = map(warm{warmup=0}, function(r) return r.first_ms - r.step_med_ms end)
warm_above = map(warm{warmup=0}, function(r)
	return r.step_ms/r.step_med_ms - 1
end)
warm_falls = increasing(map(warm{warmup=0}, function(r)
	return 1 - r.step_ms/r.step_med_ms
end))
later = warm(function(r) return r.warmup > 0 end)
warmed = count(later)
first_alike = all(later, function(r)
	return abs(r.first_ms/r.step_med_ms - 1) < 0.05
end)
warm_medians = map(warm{warmup=0}, function(r)
	local of_size = warm{size=r.size}.step_med_ms
	return max(of_size)/min(of_size) - 1
end)

-- classes of a step over their bounds
low = split{precision="bf16"}
small, largest = r_of("small", "bf16"), r_of("2.7B", "bf16")
over = function(part, bound)
	return function(r) return r[part]/bound(r) end
end
linear_over = over("linear_ms", linear_bound)
attention_over = over("attention_ms", attention_bound)
element_over = over("elementwise_ms", element_bound)
update_over = over("optimizer_ms", update_bound)
step_over = over("step_ms", step_bound)
update_at_bound = all(split, function(r)
	return between(update_over(r), 0.995, 1.02)
end)
above_bounds = all(split, function(r)
	return linear_over(r) > 1 and attention_over(r) > 1 and element_over(r) > 1
end)
attention_least = all(low, function(r)
	return r.attention_ms < math.min(r.linear_ms, r.elementwise_ms)
		and r.attention_ms < r.optimizer_ms
		and attention_over(r) > math.max(linear_over(r), element_over(r))
end)
bf16_farther = all(low, function(r)
	return step_over(r) > step_over(r_of(r.size, "fp32"))
end)
same_bound = all(low, function(r)
	return near(step_bound(r), bound_ms(r.size), 0.001)
end)
stretch_of = function(r) return r.event_ms/r.step_ms - 1 end
most_stretched = all(split, function(r)
	return stretch_of(r) <= stretch_of(small)
end)

