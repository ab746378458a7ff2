-- values of [](#nsys_profile): bounds of the classes of an eager forward pass
profile = on("h100").nsys_profile{status="ok"}
phases = profile{range={"forward", "backward", "optimizer"}}
eager_forward = profile{fusion="eager", range="forward"}
names = on("h100").nsys_profile_kernels{status="ok"}
copy_rate, gemm_rate = rate("copy"), rate("fp32")

timed_row = function(size, context)
	return on("h100").benchmarking_script{size=size, context=context,
		precision="fp32", fusion="eager"}
end
timed = function(size, context) return timed_row(size, context).fwd_med_ms end
eager = function(size, context, range)
	return profile{size=size, context=context, fusion="eager", range=range}
end

ms_of_GB = function(GB) return GB/copy_rate*1e3 end
softmax_GB = function(size, context)
	local r = timed_row(size, context)
	return 48*r.batch*r.heads*context^2*r.layers/1e9
end
softmax_bound = function(size, context)
	return ms_of_GB(softmax_GB(size, context))
end
norm_GB = function(size, context)
	local r = timed_row(size, context)
	return 28*r.batch*context*r.d_model*(2*r.layers + 1)/1e9
end
norm_bound = function(size, context) return ms_of_GB(norm_GB(size, context)) end
swiglu_bound = function(size, context)
	local r = timed_row(size, context)
	return ms_of_GB(32*r.batch*context*r.d_ff*r.layers/1e9)
end
rope_bound = function(size, context)
	local r = timed_row(size, context)
	return ms_of_GB(72*r.batch*context*r.d_model*r.layers/1e9)
end
matmul_bound = function(size, context)
	return timed_row(size, context).fwd_GFLOP/gemm_rate
end
adamw_bound = function(size)
	return ms_of_GB(132*timed_row(size, 512).parameters/1e9)
end
-- softmax over two matmuls with D numbers in a head, by bounds
ratio_bound = function(D) return (48/copy_rate)/(4*D/gemm_rate/1e3) end

-- what recording costs, and idle time
timeline_kernels = on("h100").nsys_profile_timeline{fusion="eager",
	lane=function(n) return n > 5 end}
timeline_us = function(rows)
	return sum(map(rows, function(r) return r.end_us - r.start_us end))
end
slowed = eager("small", 128, "forward")
slowed_by = function(r, column) return r[column]/r.unprofiled_ms - 1 end
slowed_most = function(column)
	return all(phases, function(r)
		return slowed_by(r, column) <= slowed_by(slowed, column)
	end)
end
recording = median(map(phases{fusion="eager", range={"forward", "backward"}},
	function(r) return slowed_by(r, "profiled_ms") end))
span_as_events = all(phases, function(r)
	return between(r.profiled_ms/r.projected_ms, 0.999, 1.02)
end)
idle_part = function(r) return 1 - r.busy_ms/r.projected_ms end
idle = function(size, context)
	return idle_part(eager(size, context, "forward"))
end
idle_us = function(r) return (r.projected_ms - r.busy_ms)/r.activities*1e3 end

-- beside the benchmark; nil is a configuration that did not fit
bench_of = function(size, context, fusion)
	return on("h100").benchmarking_script{size=size, context=context,
		precision="fp32", fusion=fusion}
end
recorded = function(size, context, fusion)
	local rows = on("h100").nsys_profile{size=size, context=context,
		fusion=fusion}
	if count(rows) == 1 then return nil end
	return rows{range="forward"}
end
beside_benchmark = function(size, context, fusion)
	local r = recorded(size, context, fusion)
	if not r then return "oom" end
	return fixed(r.projected_ms, 1) .. " / "
		.. fixed(bench_of(size, context, fusion).fwd_med_ms, 1)
end
excess = function(r) return r.projected_ms/timed(r.size, r.context) - 1 end
small_forward, xl_forward, big_forward = eager("small", 512, "forward"),
	eager("xl", 512, "forward"), eager("2.7B", 512, "forward")
worst_excess = max(map(eager_forward, function(r) return abs(excess(r)) end))

-- kernels by name; a kernel that is not listed in a pass counts there as zero
listed = function(size, range)
	return names{size=size, context=512, fusion="eager", range=range}
end
first_of = function(size, range) return listed(size, range){rank=1} end
in_both = function(size, kernel)
	local t = 0
	for _, r in ipairs(each(listed(size, {"forward", "backward"}))) do
		t = t + (r.kernel == kernel and r.total_ms or 0)
	end
	return t
end
leader = function(size)
	local best
	for _, r in ipairs(each(listed(size, {"forward", "backward"}))) do
		if not best or in_both(size, r.kernel) > in_both(size, best.kernel) then
			best = r
		end
	end
	return best
end
stays = function(size)
	return leader(size).kernel == first_of(size, "forward").kernel
end
shown = function(kernel)
	kernel = kernel:gsub("_stage.*", ""):gsub("f32f32_", ""):gsub("tilesize", "")
	return (kernel:gsub("cutlass::Kernel2<(.*)_align.*", "%1"))
end
code_of = function(r)
	return (shown(r.kernel):gsub("cutlass_80_simt_", ""):gsub("sm80_", ""))
end
xl_first, big_first = first_of("xl", "forward"), first_of("2.7B", "forward")
xl_leader, big_leader = leader("xl"), leader("2.7B")
xl_layers = timed_row("xl", 512).layers
xl_projections = listed("xl", "backward"){calls=4*xl_layers,
	kernel=function(k) return k:find("_nt_n_tilesize64x64", 1, true) ~= nil end}
leading_tile = xl_first.kernel:find("_tn_n_tilesize64x64x8", 1, true) ~= nil
sizes_here = eager_forward{context=512}
always_gemm = all(names{context=512, fusion="eager", rank=1,
	range={"forward", "backward"}}, function(r) return r.class == "matmul" end)
calls_in_ffn = on("h100").flame_graph{size="xl", fusion="eager",
	stack=function(s) return s:find("feed-forward;", 1, true) ~= nil end,
	depth=5, box=xl_first.kernel}.calls

-- TFLOP/s of the kernel that computes two matmuls of the feed-forward layers
xl_rate = 2*2*2048*shapes.xl.C*shapes.xl.F*shapes.xl.L/xl_first.total_ms*1e-9

-- what the elementary kernels of the forward pass compute
formulas = {
	["softmax_forward: map #2 of Array"] = "scale",
	["softmax_forward: map #1 of Array, Causal"] = "mask",
	["softmax_forward: reduce #1 of Array"] = "max or sum",
	["softmax_forward: map #2 of Array, PerRow"] = "subtract max",
	["softmax_forward: map #3 of Array"] = "exp",
	["softmax_forward: map #3 of Array, PerRow"] = "divide by sum",
	["swiglu_forward: map #1 of Array, Array"] = "multiply",
	["swiglu_forward: map #1 of Array"] = "sigmoid",
	["rope: map #1 of Half, Angle"] = "multiply",
}
formula = function(kernel) return formulas[kernel] or "" end

-- classes of a forward pass at context 512
in_class = function(size, column)
	return eager(size, 512, "forward")[column]
end
others = function(r)
	return r.softmax_ms + r.norm_ms + r.attention_ms + r.ffn_ms
		+ r.optimizer_ms + r.rest_ms
end
matmul_ms = function(r) return r.busy_ms - others(r) end
over_bound = function(size, column, bound)
	return in_class(size, column)/bound(size, 512)
end
as_bytes_most = max(map(sizes_here{size={"xl", "2.7B"}}, function(r)
	return math.max(over_bound(r.size, "softmax_ms", softmax_bound),
		over_bound(r.size, "ffn_ms", swiglu_bound))
end))
rope_over = function(size) return over_bound(size, "attention_ms", rope_bound) end
rope_above = between(rope_over("xl"), 1, rope_over("2.7B"))
	and rope_over("2.7B") < 1.3
rope_multiply = function(size)    -- the eight multiplications, over their bytes
	local r = timed_row(size, 512)
	return listed(size, "forward"){kernel="rope: map #1 of Half, Angle"}.total_ms
		/ms_of_GB(32*r.batch*r.context*r.d_model*r.layers/1e9)
end
rest_share = function(size)
	return others(eager(size, 512, "forward"))/eager(size, 512, "forward").busy_ms
end
part_of = function(size, column)
	return in_class(size, column)/eager(size, 512, "forward").busy_ms
end
xl_parts = {part_of("xl", "norm_ms"), part_of("xl", "attention_ms"),
	part_of("xl", "ffn_ms"), part_of("xl", "softmax_ms")}

-- a class's fraction of the kernel time of some phases, at context 512
fraction = function(size, ranges, of)
	local all, part = 0, 0
	for _, range in ipairs(ranges) do
		local r = eager(size, 512, range)
		all, part = all + r.busy_ms, part + of(r)
	end
	return part/all
end
step = {"forward", "backward", "optimizer"}
in_forward = function(size) return fraction(size, {"forward"}, matmul_ms) end
in_passes = function(size)
	return fraction(size, {"forward", "backward"}, matmul_ms)
end
in_step = function(size) return fraction(size, step, matmul_ms) end
over_sizes = function(f)
	return map(sizes_here, function(r) return f(r.size) end)
end
more = function(f, g)
	return all(sizes_here, function(r) return f(r.size) > g(r.size) end)
end
adamw = over_sizes(function(size)
	return eager(size, 512, "optimizer").busy_ms/adamw_bound(size)
end)
all_adamw = over_sizes(function(size)
	return fraction(size, step, function(r) return r.optimizer_ms end)
end)
matmuls_lead = increasing(over_sizes(in_forward))
	and increasing(over_sizes(in_passes)) and increasing(over_sizes(in_step))
	and min(over_sizes(in_step)) > 0.5

-- softmax beside the two matmuls of attention
two_matmuls = function(size, context)
	return eager(size, context, "forward scores").busy_ms
		+ eager(size, context, "forward values").busy_ms
end
softmax_ms = function(size, context)
	return eager(size, context, "forward softmax").busy_ms
end
softmax_ratio = function(size, context)
	return softmax_ms(size, context)/two_matmuls(size, context)
end
attention_rate = function(size, context)             -- TFLOP/s
	local r = timed_row(size, context)
	return 4*r.d_model/r.heads*softmax_GB(size, context)/48
		/two_matmuls(size, context)
end
values = eager("xl", 512, "forward values")
own_calls = values.kernels/xl_layers
over_bytes = {softmax_ms("xl", 512)/softmax_bound("xl", 512),
	softmax_ms("xl", 1024)/softmax_bound("xl", 1024)}
gemm_part = attention_rate("xl", 512)/gemm_rate
ratios = map(profile{fusion="eager", range="forward softmax"}, function(r)
	return softmax_ratio(r.size, r.context)
end)
