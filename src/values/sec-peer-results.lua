-- sec-peer-results.lua: PyTorch's forms of the model beside our two paths
peers = on("h100").pytorch_peers{status="ok"}
peer = function(impl, size, precision)
	return peers{impl=impl, size=size, precision=precision}
end
theirs = peers(function(r) return r.impl:find("^pytorch") ~= nil end)
fastest = function(size)
	return argmin(theirs{size=size, precision="bf16"}, "step_ms")
end
times_ours = function(r)
	return r.step_ms/peer("ours", r.size, r.precision).step_ms
end
step_less = function(r) return 1 - 1/times_ours(r) end
peer_spread = function(r) return r.step_sd_ms/r.step_ms end
step_pm = function(r) return pm(r.step_ms, r.step_sd_ms) end
peer_step = function(...) return step_pm(peer(...)) end

-- in fp32: eager PyTorch, and what part of the difference AdamW makes
eager32 = theirs{precision="fp32"}
large32 = eager32{size={"xl", "2.7B"}}
less32 = function(column)
	return peer("pytorch-eager", "2.7B", "fp32")[column]
		- peer("ours", "2.7B", "fp32")[column]
end
opt_part = less32("opt_ms")/less32("step_ms")

-- what our eager path takes more than eager PyTorch, of a column or both passes
eager_more = function(column)
	local of = function(r)
		if column == "passes" then return r.fwd_ms + r.bwd_ms end
		return r[column]
	end
	return map(large32, function(r)
		return of(peer("ours-eager", r.size, "fp32"))/of(r) - 1
	end)
end

-- in bf16: forms whose kernels are launched, and those that are replayed
launched = theirs{precision="bf16"}(function(r)
	return not r.impl:find("graphs")
end)
replayed = theirs{impl="pytorch-best-graphs"}
replay_less = function(r)
	return 1 - r.step_ms/peer("pytorch-best", r.size, "bf16").step_ms
end
in_blocks = map(theirs{impl="pytorch-best-blocks"}, times_ours)
beyond_spread = all(peers{impl="ours", precision="bf16"}, function(r)
	local best = fastest(r.size)
	return best.step_ms - best.step_sd_ms > r.step_ms
end)

-- the form that is fastest here, over ours on the host of two H200
on_h200 = function(size)
	local there = on("h200x2").pytorch_ddp_peers{size=size, precision="bf16"}
	return there{impl=fastest(size).impl}.single_ms/there{impl="ours"}.single_ms
end

-- memory: less than PyTorch's form in fp32, more than its fastest in bf16, MiB
memory_less = function(r)
	return 1 - peer("ours", r.size, r.precision).peak_MiB/r.peak_MiB
end
best_launched = function(size) return argmin(launched{size=size}, "step_ms") end
best_less = map(peers{impl="ours", precision="bf16"}, function(r)
	return -memory_less(best_launched(r.size))
end)
parameters_of = function(size)
	return on("h100").benchmarking_script{size=size, context=512,
		precision="fp32", fusion="eager"}.parameters
end
eager_launches = on("h100").benchmarking_script{size="small", context=512,
	precision="bf16", fusion="eager"}.kernels
low_copy = 2*parameters_of("2.7B")/2^20
memory_gap = peer("ours", "2.7B", "bf16").peak_MiB
	- best_launched("2.7B").peak_MiB
