-- values of [](#benchmarking_script): bounds of a fused step by class, in ms
split = on("h100").benchmarking_script_split
h100_MiB = tonumber(meta(on("h100").peaks, "memory_MiB"))
r_of = by(split, "size, precision")
linear_bound = of("linear_GFLOP/rate(precision)")
-- twelve arrays (B, T, C), and RoPE's reading and writing of two
attention_bound = of("16*attention_GFLOP*1e3/12/context/rate('copy')*(precision \z
	== 'bf16' and 2 or 4)")
-- norms 60 C and SwiGLU 18 F bytes a token in bf16; in fp32 72 C and 36 F
element_bound = of("4*context*shapes[size].L*(precision == 'bf16' \z
	and 60*shapes[size].C + 18*shapes[size].F \z
	or 72*shapes[size].C + 36*shapes[size].F)/rate('copy')*1e-6")
update_bound = of("parameters*(precision == 'bf16' and 30 or 28)/rate('copy') \z
	*1e-6")
step_bound = of("linear_bound(it) + attention_bound(it) + element_bound(it) \z
	+ update_bound(it)")

bench = on("h100").benchmarking_script
good = bench{status="ok"}
half = good{context=512}
eager = half{precision="bf16", fusion="eager"}
fast = half{precision="bf16", fusion="fused"}
exact = half{precision="fp32", fusion="fused"}
exact_eager = half{precision="fp32", fusion="eager"}
long = good{precision="bf16", fusion="fused", context=1024}
bench_row = by(bench, "size, context, precision, fusion")
step_cell = function(...) return cell(bench_row(...), "step_med_ms", 1) end
both_of = of("fwd_ms + bwd_ms")
growth = map(good{precision="bf16", fusion="fused", context=128},
	"both_of(like(long, 'size'))/both_of(it)")
at_moments = of("status:find('oom: adamw m', 1, true) == 1")
ten_forward = by(on("h100").benchmarking_script_forward{context=512}, "precision",
	"fwd_ms")
spread = map(good, "step_sd_ms/step_ms")
rerun = map(split, "abs(step_ms \z
	/like(half{fusion='fused'}, 'size', 'precision').step_med_ms - 1)")
gain = function(rows, others) return map(rows,
	"like(others, 'size').step_med_ms/step_med_ms", {others=others}) end
gain_bf16 = gain(fast, exact)
linear_part_fp32 = by(split{precision="fp32"}, "size", "linear_ms/step_ms")
launched = eager{size="small"}.kernels
launching_ms = launched*rate("launch")/1e3

steps = on("h100").benchmarking_script_steps
first = steps{start="cold", step=1}
all_first = steps{start="kernels first", step=1}
excess_ms = first.step_ms - median(steps{start="cold"}("step > 4").step_ms)
mostly_choice = first.choice_ms > max(first.library_ms, first.alloc_ms)
warm = on("h100").benchmarking_script_warmup
unwarmed = warm{warmup=0}
warm_cell = function(size, n) return pm(warm{size=size, warmup=n}, "step") end
extra = map(unwarmed, "first_ms - step_med_ms")
warm_above = map(unwarmed, "step_ms/step_med_ms - 1")

low = split{precision="bf16"}
small, largest = r_of("small", "bf16"), r_of("2.7B", "bf16")
linear_over = of("linear_ms/linear_bound(it)")
attention_over = of("attention_ms/attention_bound(it)")
element_over = of("elementwise_ms/element_bound(it)")
update_over = of("optimizer_ms/update_bound(it)")
step_over = of("step_ms/step_bound(it)")
