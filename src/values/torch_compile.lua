groups = on("h100").torch_compile_groups{status="ok"}
-- of a model of one block, in their order
group_of = {"norm", "rotations of queries and keys", "softmax",
	"residual addition, norm", "SwiGLU", "residual addition, norm", "loss"}
-- naive attention: a time of an implementation; at n = 16384 in fp32
compiled = on("h100").torch_compile{status="ok"}
jitted = compiled{impl="jit"}
compiled_time = function(impl, n, d, dtype, column) return cell(
	on("h100").torch_compile{impl=impl, n=n, d=d, dtype=dtype}, column) end
compiled_cell = function(impl, column) return compiled_time(impl, 16384, 64,
	"fp32", column) end
-- ms at least, with a softmax of 8 bytes a score forward, and of 12 backward
compiled_bound = function(n, d, pass)
	local saved = pass == "backward" and 60 - 12 or 48 - 8
	return naive_bound(n, d, pass) - 8*n*n*saved*1e-6/rate("copy")
end
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
whole_torch = function(precision, ...)
	return range("2", map(whole_models{impl="pytorch-compiled",
		precision=precision}, "whole_ms(whole_of('pytorch-eager', it), phases) \z
		/whole_ms(it, phases)", {phases={...}}))
end
whole_gain = function(r, phase) return r[phase]/whole_of("jit", r)[phase] end
