naive_rows = on("h100").pytorch_attention{dtype="fp32", batch=8}
fits = naive_rows{status="ok"}
attention_pass = by(fits, "n, d, pass")
-- ms of a pass of eight heads at least: bytes of the softmax, and the matmuls
naive_bound = function(n, d, pass)
	local back, a_byte = pass == "backward", 1e-6/rate("copy")
	local matmul = max(2*d*1e-9/rate("fp32"), 4*a_byte)
	return 8*n*n*((back and 60 or 48)*a_byte + (back and 4 or 2)*matmul)
end
exponent = function(column, from, to) return log(attention_pass(to, 64,
	"forward")[column]/attention_pass(from, 64, "forward")[column], to/from) end
naive_pair = function(d, n) return ratio(attention_pass(n, d, "forward").ms, 3)
	.. ", " .. ratio(attention_pass(n, d, "backward").ms, 3) end
naive_over = map(fits{n=16384}, "ms/naive_bound(n, d, pass)")
backward_of = function(n, d, column) return cell(on("h100").pytorch_attention{
	n=n, d=d, pass="backward"}, column) end
-- the length that is lost, in bytes; the same attention in PyTorch
lost = on("h100").pytorch_attention_failing
lost_limit = (lost{order=1}.free_MiB + lost{order=1}.MiB)*2^20
torch_eight = by(on("h100").torch_compile{impl="pytorch-eager", dtype="fp32",
	d=64}, "n")
