groups = on("h100").torch_compile_groups{status="ok"}
-- of a model of one block, in their order
group_of = {"norm", "rotations of queries and keys", "softmax",
	"residual addition, norm", "SwiGLU", "residual addition, norm", "loss"}
group_named = function(i) return group_of[i] or "?" end
group_sizes = {5, 12, 7, 6, 3, 6, 8}
group_matmuls = all(groups, "closed == 'a matmul follows' \z
	or it.number == count(groups)")
compiled_rows = on("h100").torch_compile
-- naive attention: a time of an implementation; at n = 16384 in fp32
compiled = compiled_rows{status="ok"}
compiled_of = function(impl, r) return compiled{impl=impl, dtype=r.dtype, n=r.n,
	d=r.d} end
compiled_time = function(impl, n, d, dtype, column)
	return cell(compiled_rows{impl=impl, n=n, d=d, dtype=dtype}, column)
end
compiled_cell = function(impl, column) return compiled_time(impl, 16384, 64,
	"fp32", column) end
compiled_halves = all({"fwd_ms", "bwd_ms"},
	"2*compiled_cell('jit', it) < compiled_cell('eager', it)")
-- ms at least, with a softmax of 8 bytes a score forward, and of 12 backward
compiled_bound = function(n, d, pass)
	local saved = pass == "backward" and 60 - 12 or 48 - 8
	return naive_bound(n, d, pass) - 8*n*n*saved*1e-6/attention_rate("copy")
end
compiled_over = function(pass, name) return compiled_cell("jit", pass .. "_ms")
	/compiled_bound(16384, 64, name) end
longest_held = constant("src/jit/fusion_group.h", "LONGEST_HELD = (%d+)")
compiled_saves = all(compiled{impl="jit", dtype="fp32"},
	"near(fwd_eager_MB/fwd_MB, 6, 0.03) and near(bwd_eager_MB/bwd_MB, 2*n \z
	<= longest_held and 5 or 3, 0.03) and (n == 32768) == (2*n > longest_held)")
compiled_frees = all(compiled{impl="alone"}, "abs(peak_MiB - compiled_of('jit', \z
	it).peak_MiB - 4*batch*n^2/2^20) <= 0.05*4*batch*n^2/2^20 + 0.3")
compiled_behind = all(compiled{impl="pytorch-compiled"}("n >= 4096"),
	"fwd_ms > compiled_of('jit', it).fwd_ms \z
	and bwd_ms > compiled_of('jit', it).bwd_ms")
-- models: ms of phases ("step" is one) of an implementation
whole_models = on("h100").torch_compile_model{status="ok"}
whole_of = function(impl, r) return whole_models{impl=impl, size=r.size,
	precision=r.precision} end
whole_ms = function(r, phases) return sum(phases, "r[it .. '_ms']", {r=r}) end
whole_time = function(impl, size, precision, ...)
	local r = on("h100").torch_compile_model{impl=impl, size=size,
		precision=precision}
	return r.status == "ok" and whole_ms(r, {...}) or "oom"
end
whole_step = function(impl, precision) return whole_time(impl, "2.7B", precision,
	"step") end
whole_paid = function(size, precision)
	local r = whole_models{impl="jit", size=size, precision=precision}
	local won = whole_of("eager", r).step_ms - r.step_ms
	return won > 0 and int(ceil(r.cold_ms/won)) or "-"
end
-- for each size: another form over the compiled one, of these phases together
whole_over = function(impl, precision, ...)
	return map(whole_models{impl="jit", precision=precision},
		"whole_ms(whole_of(impl, it), phases)/whole_ms(it, phases)",
		{impl=impl, phases={...}})
end
whole_range = function(...) return range("2", whole_over("eager", ...)) end
whole_joined = function(precision) return whole_over("alone", precision,
	"step") end
whole_faster = all({"fp32", "bf16"}, "min(whole_over('eager', it, 'fwd')) > 1 \z
	and min(whole_over('eager', it, 'fwd', 'bwd')) > 1 \z
	and min(whole_over('eager', it, 'step')) > 1")
whole_gain = function(r, phase) return r[phase]/whole_of("jit", r)[phase] end
-- PyTorch's compiled blocks over ours; ours over the fused path in bf16
whole_passes = function(precision) return whole_over("pytorch-compiled",
	precision, "fwd", "bwd") end
whole_hand = map(whole_models{impl="jit", precision="bf16"},
	"step_ms/whole_of('fused', it).step_ms")
whole_same = all(whole_models{impl="alone"}, "loss == whole_of('jit', it).loss")
whole_back_least = all(whole_models{impl="alone"}, "whole_gain(it, 'bwd_ms') \z
	< min(whole_gain(it, 'fwd_ms'), whole_gain(it, 'opt_ms'))")
whole_most = all(whole_models{impl="alone"},
	"whole_gain(it, 'opt_ms') > whole_gain(it, 'fwd_ms')")
