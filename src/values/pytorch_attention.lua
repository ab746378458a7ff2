naive_rows = on("h100").pytorch_attention{dtype="fp32", batch=8}
fits = naive_rows{status="ok"}
attention_pass = function(n, d, pass) return fits{n=n, d=d, pass=pass} end

-- ms of a pass of eight heads at least: bytes of the softmax, and the matmuls
naive_bound = function(n, d, pass)
	local moved, matmuls = 48, 2
	if pass == "backward" then moved, matmuls = 60, 4 end
	local a_byte = 1e-6/attention_rate("copy")
	local matmul = max(2*d*1e-9/attention_rate("fp32"), 4*a_byte)
	return 8*n*n*(moved*a_byte + matmuls*matmul)
end

exponent = function(column, d, pass, from, to)
	return math.log(attention_pass(to, d, pass)[column]
		/attention_pass(from, d, pass)[column], to/from)
end
naive_over = map(fits{n=16384}, function(r)
	return r.ms/naive_bound(r.n, r.d, r.pass)
end)
backward_of = function(n, d, column)
	local r = on("h100").pytorch_attention{n=n, d=d, pass="backward"}
	return r.status == "ok" and r[column] or "oom"
end
short_is_launches = 9*attention_rate("launch")/1000
	> 2*naive_bound(256, 64, "forward") and 9*attention_rate("launch")/1000
	< attention_pass(256, 64, "forward").ms
as_derived = all(fits{pass="backward"}, function(r)
	return abs(r.peak_MiB - r.derived_MiB) < 2
end) and all(fits{pass="forward"}, function(r)
	return abs(r.before_MiB - r.derived_MiB) < 0.1
end)

-- the length that is lost, in bytes and by the formula of the peak
lost = on("h100").pytorch_attention_failing
lost_limit = (lost{order=1}.free_MiB + lost{order=1}.MiB)*2^20
most_queries = (math.sqrt((8*8*64*4)^2 + 4*96*lost_limit) - 8*8*64*4)/(2*96)
first_lost = max(fits{pass="backward"}.n) == 16384 and lost.n[1] == 32768
	and all(naive_rows{n=32768}, function(r)
		return (r.status == "ok") == (r.pass == "forward")
	end)
grows_squared = between(exponent("before_MiB", 64, "forward", 4096, 16384), 1.9,
	2) and exponent("before_MiB", 64, "forward", 256, 1024) < 1.8

-- the same attention in PyTorch, one head in matrices, eight at two lengths
beside_naive = on("h100").flash_benchmarking_peers{dtype="fp32", heads=1,
	n=16384, d=128}
torch_matrices = beside_naive{variant="pytorch-eager"}.peak_MiB/1024
our_matrices = beside_naive{variant="naive"}.peak_MiB/1024
torch_eight = function(n)
	return on("h100").torch_compile{impl="pytorch-eager", dtype="fp32", d=64, n=n}
end
