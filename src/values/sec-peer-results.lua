-- sec-peer-results.lua: PyTorch's forms of the model beside our two paths
peers = on("h100").pytorch_peers{status="ok"}
peer = by(peers, "impl, size, precision")
theirs = peers("impl:find('^pytorch') ~= nil")
fastest = function(size) return argmin(theirs{size=size, precision="bf16"},
	"step_ms") end
times_ours = of("step_ms/peer('ours', size, precision).step_ms")
step_less = of("1 - 1/times_ours(it)")
peer_spread = of("step_sd_ms/step_ms")
peer_step = function(...) return pm(peer(...), "step") end
-- in fp32: eager PyTorch, and what part of the difference AdamW makes
eager32 = theirs{precision="fp32"}
large32 = eager32{size={"xl", "2.7B"}}
less32 = function(column) return peer("pytorch-eager", "2.7B", "fp32")[column]
	- peer("ours", "2.7B", "fp32")[column] end
eager_over = function(size, column)
	return peer("ours-eager", size, "fp32")[column]
		/peer("pytorch-eager", size, "fp32")[column]
end
eager_more = map(large32, "eager_over(size, 'step_ms') - 1")
-- in bf16: forms whose kernels are launched, and those that are replayed
launched = theirs{precision="bf16"}("not impl:find('graphs')")
replayed = theirs{impl="pytorch-best-graphs"}
replay_less = of("1 - step_ms/peer('pytorch-best', size, 'bf16').step_ms")
in_blocks = map(theirs{impl="pytorch-best-blocks"}, times_ours)
-- memory: less than PyTorch's form in fp32, more than its fastest in bf16
memory_less = of("1 - peer('ours', size, precision).peak_MiB/peak_MiB")
best_less = map(peers{impl="ours", precision="bf16"},
	"-memory_less(argmin(launched{size=size}, 'step_ms'))")
parameters_of = by(on("h100").benchmarking_script{context=512, precision="fp32",
	fusion="eager"}, "size", "parameters")
eager_launches = on("h100").benchmarking_script{size="small", context=512,
	precision="bf16", fusion="eager"}.kernels
