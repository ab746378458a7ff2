-- values of [](#benchmarking_script): bounds of a fused step by class, in ms
split = on("h100").benchmarking_script_split
top = on("h100").peaks
copy = top{quantity="copy"}.value  -- GB/s
h100_MiB = tonumber(meta(on("h100").peaks, "memory_MiB"))
r_of = by(split, "size, precision")
linear_bound = of("linear_GFLOP/top{quantity=precision}.value")
-- seven matmuls, half of each, in fp32 three of fp16 for one
attention_flops_ms = of("attention_GFLOP*7/12*(precision == 'fp32' and 3 or 1) \z
	/top{quantity=precision == 'fp32' and 'fp16' or 'bf16'}.value")
-- twelve arrays (B, T, C), and RoPE's reading and writing of two
attention_bytes_ms = of("16*attention_GFLOP*1e3/12/context/copy*(precision \z
	== 'bf16' and 2 or 4)")
attention_bound = function(r) return max(attention_flops_ms(r),
	attention_bytes_ms(r)) end
-- norms 60 C and SwiGLU 18 F bytes a token in bf16; in fp32 72 C and 36 F
element_bound = of("4*context*shapes[size].L*(precision == 'bf16' \z
	and 60*shapes[size].C + 18*shapes[size].F \z
	or 72*shapes[size].C + 36*shapes[size].F)/copy*1e-6")
update_bound = of("parameters*(precision == 'bf16' and 30 or 28)/copy*1e-6")
step_bound = of("linear_bound(it) + attention_bound(it) + element_bound(it) \z
	+ update_bound(it)")
expected_gain = function(size) return step_bound(r_of(size, "fp32"))
	/step_bound(r_of(size, "bf16")) end
bench = on("h100").benchmarking_script
good = bench{status="ok"}
half = good{context=512}
eager = half{precision="bf16", fusion="eager"}
fast = half{precision="bf16", fusion="fused"}
exact = half{precision="fp32", fusion="fused"}
exact_eager = half{precision="fp32", fusion="eager"}
short = good{precision="bf16", fusion="fused", context=128}
long = good{precision="bf16", fusion="fused", context=1024}
step_cell = function(...) return cell(bench_row(...), "step_med_ms", 1) end
bench_row = by(bench, "size, context, precision, fusion")
backward_largest = all(half, "(precision == 'fp32') ~= (fusion == 'eager') \z
	or bwd_ms > fwd_ms and bwd_ms > opt_ms")
back_over_forward = map(exact, "bwd_ms/fwd_ms")
back_over_low = map(fast, "bwd_ms/fwd_ms")
opt_halved = all(short, "opt_ms/step_ms \z
	> 2*like(long, 'size').opt_ms/like(long, 'size').step_ms")
both_of = of("fwd_ms + bwd_ms")
growth = map(short, "both_of(like(long, 'size'))/both_of(it)")
failed = bench("size ~= '10B' and status ~= 'ok'")
fits = good{size="2.7B", context=1024, precision="fp32", fusion="fused"}
ten = bench{size="10B"}
at_moments = of("status:find('oom: adamw m', 1, true) == 1")
ten_forward = by(on("h100").benchmarking_script_forward{context=512}, "precision",
	"fwd_ms")
spread = map(good, "step_sd_ms/step_ms")
worst = argmax(good, "step_sd_ms/step_ms")
two_runs = function(size) return {fast{size=size}.step_med_ms,
	r_of(size, "bf16").step_ms} end
rerun = map(split, "abs(step_ms \z
	/like(half{fusion='fused'}, 'size', 'precision').step_med_ms - 1)")
phase_spread = function(name) return median(good, "it[sd]/it[ms]",
	{sd=name .. "_sd_ms", ms=name .. "_ms"}) end
gain = function(rows, others) return map(rows,
	"like(others, 'size').step_med_ms/step_med_ms", {others=others}) end
gain_bf16, gain_bf16_eager = gain(fast, exact), gain(eager, exact_eager)
gain_fused, gain_fused_fp32 = gain(fast, eager), gain(exact, exact_eager)
linear_gain = function(size) return r_of(size, "fp32").linear_ms
	/r_of(size, "bf16").linear_ms end
linear_part_fp32 = function(size) return r_of(size, "fp32").linear_ms
	/r_of(size, "fp32").step_ms end
launched, fused_launches = eager{size="small"}.kernels, fast{size="small"}.kernels
launching_ms = launched*rate("launch")/1e3
-- first steps of a process
steps = on("h100").benchmarking_script_steps
first = steps{start="cold", step=1}
all_first = steps{start="kernels first", step=1}
steady = median(steps{start="cold"}("step > 4").step_ms)
rest = steps{start="cold"}("step > 1")
excess_ms = first.step_ms - steady
known_ms = first.choice_ms + first.library_ms + first.alloc_ms
mostly_choice = first.choice_ms > max(first.library_ms, first.alloc_ms)
load_part = all_first.library_ms/all_first.step_ms
-- fresh processes after 0, 1, 2 and 5 warm-up steps
warm = on("h100").benchmarking_script_warmup
warm_cell = function(size, n) return pm(warm{size=size, warmup=n}, "step") end
warm_first = function(n) return map(warm{warmup=n}, "first_ms/step_med_ms") end
warm_sd = function(n) return map(warm{warmup=n}, "step_sd_ms/step_med_ms") end
extra = map(warm{warmup=0}, "first_ms - step_med_ms")
warm_above = map(warm{warmup=0}, "step_ms/step_med_ms - 1")
later = warm("warmup > 0")
warm_medians = map(warm{warmup=0}, "max(like(warm, 'size').step_med_ms) \z
	/min(like(warm, 'size').step_med_ms) - 1")
-- classes of a step over their bounds
low = split{precision="bf16"}
small, largest = r_of("small", "bf16"), r_of("2.7B", "bf16")
linear_over = of("linear_ms/linear_bound(it)")
attention_over = of("attention_ms/attention_bound(it)")
element_over = of("elementwise_ms/element_bound(it)")
update_over = of("optimizer_ms/update_bound(it)")
step_over = of("step_ms/step_bound(it)")
update_at_bound = all(split, "between(update_over(it), 0.995, 1.02)")
attention_least = all(low, "attention_over(it) > linear_over(it) and \z
	attention_over(it) > element_over(it) and attention_ms < min(linear_ms, \z
	elementwise_ms, optimizer_ms)")
bf16_farther = all(low, "step_over(it) > step_over(r_of(size, 'fp32'))")
stretch_of = of("event_ms/step_ms - 1")
