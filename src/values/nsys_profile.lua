-- values of [](#nsys_profile)
profile = on("h100").nsys_profile{status="ok"}
phases = profile{range={"forward", "backward", "optimizer"}}
eager_forward = profile{fusion="eager", range="forward"}
sizes_here = eager_forward{context=512}
names = on("h100").nsys_profile_kernels{context=512, fusion="eager", status="ok"}
copy_rate, gemm_rate = rate("copy"), rate("fp32")
timed_rows = on("h100").benchmarking_script{precision="fp32", fusion="eager"}
timed_row = by(timed_rows, "size, context")
timed = by(timed_rows, "size, context", "fwd_med_ms")
eager = by(profile{fusion="eager"}, "size, context, range")
-- bounds of a class of a forward pass: so many bytes for each sequence
eager_bound = function(text) return by(timed_rows, "size, context",
	"batch*" .. text .. "/copy_rate*1e-6") end
softmax_bound = eager_bound("48*heads*context^2*layers")
norm_bound = eager_bound("28*context*d_model*(2*layers + 1)")
swiglu_bound = eager_bound("32*context*d_ff*layers")
rope_bound = eager_bound("56*context*d_model*layers")
matmul_bound = by(timed_rows, "size, context", "fwd_GFLOP/gemm_rate")
-- softmax over two matmuls with D numbers in a head, by bounds
ratio_bound = function(D) return (48/copy_rate)/(4*D/gemm_rate/1e3) end
-- what recording costs, and idle time
timeline_kernels = on("h100").nsys_profile_timeline{fusion="eager"}("lane > 5")
timeline_us = function(rows) return sum(rows, "end_us - start_us") end
recording = median(phases{fusion="eager", range={"forward", "backward"}},
	"profiled_ms/unprofiled_ms - 1")
idle = by(eager_forward, "size, context", "1 - busy_ms/projected_ms")
idle_us = of("(projected_ms - busy_ms)/activities*1e3")
-- beside the benchmark
beside_benchmark = function(size, context, fusion)
	local r = on("h100").nsys_profile{size=size, context=context, fusion=fusion}(
		"status ~= 'ok' or range == 'forward'")
	return r.status ~= "ok" and "oom" or fixed(r.projected_ms, 1) .. " / "
		.. fixed(bench_row(size, context, "fp32", fusion).fwd_med_ms, 1)
end
excess = of("projected_ms/timed(size, context) - 1")
xl_forward, big_forward = eager("xl", 512, "forward"),
	eager("2.7B", 512, "forward")
worst_excess = max(eager_forward, "abs(excess(it))")
-- kernels by name; a kernel that is not listed in a pass counts there as zero
listed = by(names, "size, range")
in_both = function(size, kernel) return sum(listed(size, {"forward", "backward"}),
	"kernel == name and total_ms or 0", {name=kernel}) end
leader = function(size) return argmax(listed(size, {"forward", "backward"}),
	"in_both(size, kernel)") end
first_of = by(names{range="forward", rank=1}, "size")
stays = function(size) return leader(size).kernel == first_of(size).kernel end
shown = function(kernel)
	kernel = kernel:gsub("_stage.*", ""):gsub("f32f32_", ""):gsub("tilesize", "")
	return (kernel:gsub("cutlass::Kernel2<(.*)_align.*", "%1"))
end
short_name = function(kernel)
	return (shown(kernel):gsub("cutlass_80_simt_", ""):gsub("sm80_", ""))
end
xl_first, big_first = first_of("xl"), first_of("2.7B")
xl_lead = by(on("h100").nsys_profile_kernels{size="xl", fusion="eager", rank=1},
	"context, range")
xl_leader = leader("xl")
xl_layers = timed_row("xl", 512).layers
-- what the elementary kernels of the forward pass compute
formulas = {["softmax_forward: map #2 of Array"]="scale",
	["softmax_forward: map #1 of Array, Causal"]="mask",
	["softmax_forward: reduce #1 of Array"]="max or sum",
	["softmax_forward: map #2 of Array, PerRow"]="subtract max",
	["softmax_forward: map #3 of Array"]="exp",
	["softmax_forward: map #3 of Array, PerRow"]="divide by sum",
	["swiglu_forward: map #1 of Array, Array"]="multiply",
	["swiglu_forward: map #1 of Array"]="sigmoid",
	["rope: map #1 of Half, Angle"]="multiply"}
formula = function(kernel) return formulas[kernel]
	or (kernel:match("_kernel<(%a+)") or ""):lower() end
-- classes of a forward pass at context 512
others = of("softmax_ms + norm_ms + attention_ms + ffn_ms + optimizer_ms \z
	+ rest_ms")
matmul_ms = of("busy_ms - others(it)")
over_bound = function(size, column, bound) return sizes_here{size=size}[column]
	/bound(size, 512) end
rest_share = by(sizes_here, "size", "others(it)/busy_ms")
xl_parts = map({"norm_ms", "attention_ms", "ffn_ms", "softmax_ms"},
	"xl_forward[it]/xl_forward.busy_ms")
-- a class's fraction of the kernel time of a step, at context 512
in_step_of = function(size, part)
	local rows = phases{size=size, context=512, fusion="eager"}
	return sum(rows, part)/sum(rows, "busy_ms")
end
in_forward = by(sizes_here, "size", "1 - others(it)/busy_ms")
in_step = function(size) return in_step_of(size, matmul_ms) end
adamw_parts = map(sizes_here, "in_step_of(size, 'optimizer_ms')")
matmuls_lead = increasing(sizes_here, "in_forward(size)")
	and increasing(sizes_here, "in_step(size)") and in_step("small") > 0.5
-- softmax beside the two matmuls of attention
softmax_ratio = function(size, context) return eager(size, context,
	"forward softmax").busy_ms/sum(eager(size, context, {"forward scores",
	"forward values"}).busy_ms) end
ratios = map(profile{fusion="eager", range="forward softmax"},
	"softmax_ratio(size, context)")
