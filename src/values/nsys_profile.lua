-- values of [](#nsys_profile): bounds of the classes of an eager forward pass
profile = on("h100").nsys_profile{status="ok"}
phases = profile{range={"forward", "backward", "optimizer"}}
eager_forward = profile{fusion="eager", range="forward"}
names = on("h100").nsys_profile_kernels{status="ok"}
copy_rate, gemm_rate = rate("copy"), rate("fp32")
timed_rows = on("h100").benchmarking_script{precision="fp32", fusion="eager"}
timed_row = by(timed_rows, "size, context")
timed = by(timed_rows, "size, context", "fwd_med_ms")
eager = by(profile{fusion="eager"}, "size, context, range")
ms_of_GB = function(GB) return GB/copy_rate*1e3 end
softmax_GB = by(timed_rows, "size, context",
	"48*batch*heads*context^2*layers/1e9")
softmax_bound = function(...) return ms_of_GB(softmax_GB(...)) end
norm_GB = by(timed_rows, "size, context",
	"28*batch*context*d_model*(2*layers + 1)/1e9")
norm_bound = function(...) return ms_of_GB(norm_GB(...)) end
swiglu_bound = by(timed_rows, "size, context",
	"ms_of_GB(32*batch*context*d_ff*layers/1e9)")
rope_bound = by(timed_rows, "size, context",
	"ms_of_GB(56*batch*context*d_model*layers/1e9)")
matmul_bound = by(timed_rows, "size, context", "fwd_GFLOP/gemm_rate")
adamw_bound = by(timed_rows{context=512}, "size", "ms_of_GB(132*parameters/1e9)")
-- softmax over two matmuls with D numbers in a head, by bounds
ratio_bound = function(D) return (48/copy_rate)/(4*D/gemm_rate/1e3) end
-- what recording costs, and idle time
timeline_kernels = on("h100").nsys_profile_timeline{fusion="eager"}("lane > 5")
timeline_us = function(rows) return sum(rows, "end_us - start_us") end
slowed = eager("small", 128, "forward")
slowed_by = function(r, column) return r[column]/r.unprofiled_ms - 1 end
recording = median(phases{fusion="eager", range={"forward", "backward"}},
	"slowed_by(it, 'profiled_ms')")
idle_part = of("1 - busy_ms/projected_ms")
idle = by(eager_forward, "size, context", "idle_part(it)")
idle_us = of("(projected_ms - busy_ms)/activities*1e3")
-- beside the benchmark; nil is a configuration that did not fit
bench_of = by(on("h100").benchmarking_script{precision="fp32"},
	"size, context, fusion")
beside_benchmark = function(size, context, fusion)
	local r = on("h100").nsys_profile{size=size, context=context, fusion=fusion}(
		"status ~= 'ok' or range == 'forward'")
	return r.status ~= "ok" and "oom" or fixed(r.projected_ms, 1) .. " / "
		.. fixed(bench_of(size, context, fusion).fwd_med_ms, 1)
end
excess = of("projected_ms/timed(size, context) - 1")
small_forward, xl_forward, big_forward = eager("small", 512, "forward"),
	eager("xl", 512, "forward"), eager("2.7B", 512, "forward")
worst_excess = max(eager_forward, "abs(excess(it))")
-- kernels by name; a kernel that is not listed in a pass counts there as zero
listed = by(names{context=512, fusion="eager"}, "size, range")
first_of = function(size, range) return listed(size, range){rank=1} end
in_both = function(size, kernel) return sum(listed(size, {"forward", "backward"}),
	"kernel == name and total_ms or 0", {name=kernel}) end
leader = function(size) return argmax(listed(size, {"forward", "backward"}),
	"in_both(size, kernel)") end
stays = function(size) return leader(size).kernel
	== first_of(size, "forward").kernel end
shown = function(kernel)
	kernel = kernel:gsub("_stage.*", ""):gsub("f32f32_", ""):gsub("tilesize", "")
	return (kernel:gsub("cutlass::Kernel2<(.*)_align.*", "%1"))
end
code_of = of("(shown(kernel):gsub('cutlass_80_simt_', ''):gsub('sm80_', ''))")
xl_first, big_first = first_of("xl", "forward"), first_of("2.7B", "forward")
xl_leader, big_leader = leader("xl"), leader("2.7B")
xl_layers = timed_row("xl", 512).layers
leading_tile = xl_first.kernel:find("_tn_n_tilesize64x64x8", 1, true) ~= nil
sizes_here = eager_forward{context=512}
always_gemm = all(names{context=512, fusion="eager", rank=1,
	range={"forward", "backward"}}, "class == 'matmul'")
calls_in_ffn = on("h100").flame_graph{size="xl", fusion="eager", depth=5,
	box=xl_first.kernel}("stack:find('feed-forward;', 1, true)").calls
-- TFLOP/s of the kernel that computes two matmuls of the feed-forward layers
xl_rate = 2*2*2048*shapes.xl.C*shapes.xl.F*shapes.xl.L/xl_first.total_ms*1e-9
-- what the elementary kernels of the forward pass compute
formulas = {["softmax_forward: map #2 of Array"]="scale",
	["softmax_forward: map #1 of Array, Causal"]="mask",
	["softmax_forward: reduce #1 of Array"]="max or sum",
	["softmax_forward: map #2 of Array, PerRow"]="subtract max",
	["softmax_forward: map #3 of Array"]="exp",
	["softmax_forward: map #3 of Array, PerRow"]="divide by sum",
	["swiglu_forward: map #1 of Array, Array"]="multiply",
	["swiglu_forward: map #1 of Array"]="sigmoid",
	["rope: map #1 of Half, Angle"]="multiply",}
formula = function(kernel) return formulas[kernel]
	or (kernel:match("_kernel<(%a+)") or ""):lower() end
-- classes of a forward pass at context 512
in_class = function(size, column) return eager(size, 512, "forward")[column] end
others = of("softmax_ms + norm_ms + attention_ms + ffn_ms + optimizer_ms \z
	+ rest_ms")
matmul_ms = of("busy_ms - others(it)")
over_bound = function(size, column, bound) return in_class(size, column)
	/bound(size, 512) end
as_bytes_most = max(sizes_here{size={"xl", "2.7B"}},
	"max(softmax_ms/softmax_bound(size, 512), ffn_ms/swiglu_bound(size, 512))")
rope_over = function(size) return over_bound(size, "attention_ms", rope_bound) end
rope_multiply = function(size)    -- the eight multiplications, over their bytes
	return sum(listed(size, "forward"){kernel={"rope: map #1 of Half, Angle",
		"map_kernel<MULTIPLY, 1>"}}, "total_ms")/rope_bound(size, 512)*56/32
end
rest_share = by(sizes_here, "size", "others(it)/busy_ms")
xl_parts = map({"norm_ms", "attention_ms", "ffn_ms", "softmax_ms"},
	"xl_forward[it]/xl_forward.busy_ms")
-- a class's fraction of the kernel time of some phases, at context 512
fraction = function(size, ranges, part)
	local rows = profile{size=size, context=512, fusion="eager", range=ranges}
	return sum(rows, part)/sum(rows, "busy_ms")
end
step = {"forward", "backward", "optimizer"}
in_forward = function(size) return fraction(size, "forward", matmul_ms) end
in_passes = function(size) return fraction(size, {"forward", "backward"},
	matmul_ms) end
in_step = function(size) return fraction(size, step, matmul_ms) end
over_sizes = function(f) return map(sizes_here, "f(size)", {f=f}) end
more = function(f, g) return all(sizes_here, "f(size) > g(size)", {f=f, g=g}) end
adamw = map(sizes_here, "eager(size, 512, 'optimizer').busy_ms/adamw_bound(size)")
all_adamw = map(sizes_here, "fraction(size, step, 'optimizer_ms')")
matmuls_lead = increasing(over_sizes(in_forward))
	and increasing(over_sizes(in_passes)) and increasing(over_sizes(in_step))
	and min(over_sizes(in_step)) > 0.5
-- softmax beside the two matmuls of attention
two_matmuls = function(size, context)
	return sum(eager(size, context, {"forward scores", "forward values"}).busy_ms)
end
softmax_ms = function(size, context) return eager(size, context,
	"forward softmax").busy_ms end
softmax_ratio = function(size, context) return softmax_ms(size, context)
	/two_matmuls(size, context) end
attention_rate = function(size, context)             -- TFLOP/s
	local r = timed_row(size, context)
	return 4*r.d_model/r.heads*softmax_GB(size, context)/48
		/two_matmuls(size, context)
end
values = eager("xl", 512, "forward values")
over_bytes = {softmax_ms("xl", 512)/softmax_bound("xl", 512),
	softmax_ms("xl", 1024)/softmax_bound("xl", 1024)}
gemm_part = attention_rate("xl", 512)/gemm_rate
ratios = map(profile{fusion="eager", range="forward softmax"},
	"softmax_ratio(size, context)")
