naive_rows = on("h100").pytorch_attention{dtype="fp32", batch=8}
fits = naive_rows{status="ok"}
attention_pass = by(fits, "n, d, pass")
-- ms of a pass of eight heads at least: bytes of the softmax, and the matmuls
naive_bound = function(n, d, pass)
	local moved, matmuls = 48, 2
	if pass == "backward" then moved, matmuls = 60, 4 end
	local a_byte = 1e-6/attention_rate("copy")
	local matmul = max(2*d*1e-9/attention_rate("fp32"), 4*a_byte)
	return 8*n*n*(moved*a_byte + matmuls*matmul)
end
exponent = function(column, d, pass, from, to)
	return log(attention_pass(to, d, pass)[column]/attention_pass(from, d,
		pass)[column], to/from)
end
naive_over = map(fits{n=16384}, "ms/naive_bound(n, d, pass)")
backward_of = function(n, d, column) return cell(on("h100").pytorch_attention{
	n=n, d=d, pass="backward"}, column) end
short_is_launches = between(9*attention_rate("launch")/1000,
	2*naive_bound(256, 64, "forward"), attention_pass(256, 64, "forward").ms)
-- the length that is lost, in bytes and by the formula of the peak
lost = on("h100").pytorch_attention_failing
lost_limit = (lost{order=1}.free_MiB + lost{order=1}.MiB)*2^20
first_lost = max(fits{pass="backward"}.n) == 16384 and lost.n[1] == 32768
	and all(naive_rows{n=32768}, "(status == 'ok') == (pass == 'forward')")
-- the same attention in PyTorch, one head in matrices, eight at two lengths
beside_naive = on("h100").flash_benchmarking_peers{dtype="fp32", heads=1, n=16384,
	d=128}
torch_matrices = beside_naive{variant="pytorch-eager"}.peak_MiB/1024
our_matrices = beside_naive{variant="naive"}.peak_MiB/1024
torch_eight = by(on("h100").torch_compile{impl="pytorch-eager", dtype="fp32",
	d=64}, "n")
