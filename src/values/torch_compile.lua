groups = on("h100").torch_compile_groups{status="ok"}
-- of a model of one block, in their order
group_of = {"norm", "rotations of queries and keys", "softmax",
	"residual addition, norm", "SwiGLU", "residual addition, norm", "loss"}
group_named = function(i) return group_of[i] or "?" end
group_sizes = {5, 12, 7, 6, 3, 6, 8}
groups_as_named = count(groups) == #group_of and all(groups, function(r)
	return r.operations == group_sizes[r.number]
end)
group_matmuls = all(groups, function(r)
	return r.closed == "a matmul follows" or r.number == count(groups)
end)

-- naive attention: a time of an implementation; at n = 16384 in fp32
compiled = on("h100").torch_compile{status="ok"}
compiled_of = function(impl, r)
	return compiled{impl=impl, dtype=r.dtype, n=r.n, d=r.d}
end
compiled_time = function(impl, n, d, dtype, column)
	local r = on("h100").torch_compile{impl=impl, n=n, d=d, dtype=dtype}
	return r.status == "ok" and r[column] or "oom"
end
compiled_cell = function(impl, column)
	return compiled_time(impl, 16384, 64, "fp32", column)
end
compiled_gain = function(pass)
	return compiled_cell("alone", pass .. "_ms")
		/compiled_cell("jit", pass .. "_ms")
end
compiled_halves = 2*compiled_cell("jit", "fwd_ms")
	< compiled_cell("eager", "fwd_ms") and 2*compiled_cell("jit", "bwd_ms")
	< compiled_cell("eager", "bwd_ms")

-- ms at least, with a softmax of 8 bytes a score forward, and of 12 backward
compiled_bound = function(n, d, pass)
	local saved = pass == "backward" and 60 - 12 or 48 - 8
	return naive_bound(n, d, pass) - 8*n*n*saved*1e-6/attention_rate("copy")
end
compiled_over = function(pass, name)
	return compiled_cell("jit", pass .. "_ms")/compiled_bound(16384, 64, name)
end

compiled_is_one = all(compiled{impl="jit"}, function(r)
	return r.fwd_operations == 7 and r.bwd_operations == 7
		and r.fwd_kernels == 1 and r.bwd_kernels == 1
end)
longest_held = constant("src/jit/fusion_group.h", "LONGEST_HELD = (%d+)")
compiled_saves = all(compiled{impl="jit", dtype="fp32"}, function(r)
	return near(r.fwd_eager_MB/r.fwd_MB, 6, 0.03)
		and near(r.bwd_eager_MB/r.bwd_MB, 2*r.n <= longest_held and 5 or 3, 0.03)
		and (r.n == 32768) == (2*r.n > longest_held)
end)
compiled_frees = all(compiled{impl="alone"}, function(r)
	local matrix = 4*r.batch*r.n^2/2^20
	return abs(r.peak_MiB - compiled_of("jit", r).peak_MiB - matrix)
		<= 0.05*matrix + 0.3
end)
compiled_behind = all(compiled{impl="pytorch-compiled",
	n=function(n) return n >= 4096 end}, function(r)
	local ours = compiled_of("jit", r)
	return r.fwd_ms > ours.fwd_ms and r.bwd_ms > ours.bwd_ms
end)

-- models: ms of phases ("step" is one) of an implementation
whole_models = on("h100").torch_compile_model{status="ok"}
whole_of = function(impl, r)
	return whole_models{impl=impl, size=r.size, precision=r.precision}
end
whole_ms = function(r, ...)
	local sum = 0
	for _, phase in ipairs{...} do sum = sum + r[phase .. "_ms"] end
	return sum
end
whole_time = function(impl, size, precision, ...)
	local r = on("h100").torch_compile_model{impl=impl, size=size,
		precision=precision}
	return r.status == "ok" and whole_ms(r, ...) or "oom"
end
whole_step = function(impl, precision)
	return whole_time(impl, "2.7B", precision, "step")
end
whole_paid = function(size, precision)
	local r = whole_models{impl="jit", size=size, precision=precision}
	local won = whole_of("eager", r).step_ms - r.step_ms
	return won > 0 and int(ceil(r.cold_ms/won)) or "-"
end

-- for each size: another form over the compiled one, of these phases together
whole_over = function(impl, precision, ...)
	local found = {}
	for _, r in ipairs(each(whole_models{impl="jit", precision=precision})) do
		table.insert(found, whole_ms(whole_of(impl, r), ...)/whole_ms(r, ...))
	end
	return found
end
whole_range = function(precision, ...)
	local found = whole_over("eager", precision, ...)
	return fixed(min(found), 2) .. " to " .. fixed(max(found), 2)
end
whole_joined = function(precision)
	return whole_over("alone", precision, "step")
end
whole_faster = true
for _, precision in ipairs{"fp32", "bf16"} do
	whole_faster = whole_faster and min(whole_over("eager", precision, "fwd")) > 1
		and min(whole_over("eager", precision, "fwd", "bwd")) > 1
		and min(whole_over("eager", precision, "step")) > 1
end

-- PyTorch's compiled blocks over ours; ours over the fused path in bf16
whole_passes = function(precision)
	return whole_over("pytorch-compiled", precision, "fwd", "bwd")
end
whole_hand = map(whole_models{impl="jit", precision="bf16"}, function(r)
	return r.step_ms/whole_of("fused", r).step_ms
end)

whole_same = all(whole_models{impl="alone"}, function(r)
	return r.loss == whole_of("jit", r).loss
end)
whole_back_least = all(whole_models{impl="alone"}, function(r)
	local joined = whole_of("jit", r)
	return r.bwd_ms/joined.bwd_ms < r.fwd_ms/joined.fwd_ms
		and r.bwd_ms/joined.bwd_ms < r.opt_ms/joined.opt_ms
end)
whole_most = all(whole_models{impl="alone"}, function(r)
	local joined = whole_of("jit", r)
	return r.opt_ms/joined.opt_ms > r.fwd_ms/joined.fwd_ms
end)
