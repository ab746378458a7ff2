-- values of [](#sec-notes-model): sizes, and the cost of a step
shapes = {small={C=768, F=3072, L=12, H=12}, medium={C=1024, F=4096, L=24, H=16},
	large={C=1280, F=5120, L=36, H=20}, xl={C=1600, F=6400, L=48, H=25},
	["2.7B"]={C=2560, F=10240, L=32, H=32}, ["10B"]={C=4608, F=12288, L=50, H=36}}
-- are rows of bf16 along the eager path older than the casts that it keeps?
autocast_later = (function()
	local rows = on("h100").memory_profiling{size="2.7B", context=512,
		fusion="eager", mode="forward"}
	return max(rows{precision="bf16"}, "peak_MiB")
		< max(rows{precision="fp32"}, "peak_MiB")
end)()
vocabulary = 10000
block_weights = of("4*C^2 + 3*C*F")
params = function(size) return 2*vocabulary*shapes[size].C + shapes[size].C
	+ shapes[size].L*(block_weights(shapes[size]) + 2*shapes[size].C) end
state_GiB = function(size) return 16*params(size)/2^30 end
-- FLOPs and bytes of both passes over N tokens
linear_FLOP = function(size, N) return 6*N*(vocabulary*shapes[size].C
	+ shapes[size].L*block_weights(shapes[size])) end
flash_FLOP = function(size, N, T) return 7*N*T*shapes[size].C*shapes[size].L end
linear_ms = function(size) return linear_FLOP(size, 2048)/rate("bf16")*1e-9 end
flash_ms = function(size) return max(flash_FLOP(size, 2048, 512)/rate("bf16")
	*1e-9, 24*2048*shapes[size].C*shapes[size].L/rate("copy")*1e-6) end
element_ms = function(size) return 2048*shapes[size].L*(68*shapes[size].C
	+ 18*shapes[size].F)/rate("copy")*1e-6 end
adamw_ms = function(size) return 30*params(size)/rate("copy")*1e-6 end
bound_ms = function(size) return linear_ms(size) + flash_ms(size)
	+ element_ms(size) + adamw_ms(size) end
-- of a quarter of the tokens
quarter_ms = function(size) return (bound_ms(size) - adamw_ms(size))/4
	+ adamw_ms(size) end
linear_share = function(size) return linear_ms(size)/bound_ms(size) end
counted = on("h100").benchmarking_script_split{precision="bf16"}
-- GiB that the blocks save for the backward pass of four sequences
saved_GiB = function(size, T, r, w, path)
	local of_path = path == "eager"
		and "2*(C + 1)*r + (6*C + 3*F)*w + H*T*(w < 4 and 4 + w or 4) \z
		+ (w < 4 and (4*C^2 + 3*C*F)*w/(4*T) or 0)"
		or "2*(C + 1)*r + (4*C + 2*F)*w + H*r"
	return shapes[size].L*4*T/2^30*of(of_path, {r=r, w=w, T=T})(shapes[size])
end

-- bytes an element in fp32, counted from the eager kernels
moved = {["rmsnorm forward"]=28, ["rmsnorm backward"]=88, ["softmax forward"]=48,
	["softmax backward"]=60, ["swiglu forward"]=32, ["swiglu backward"]=96,
	adamw=132}
elements = function(op) return ({rmsnorm=2048*2560, softmax=2048*512*32,
	swiglu=2048*10240, adamw=2^26})[op:match("^%a+")] end
both_paths = on("h100").kernel_speed{size="2.7B", precision="fp32"}
fused_of = by(both_paths{path="fused"}, "op")
fused_bytes = function(op) return fused_of(op).bytes/elements(op) end
eager_copies = map(both_paths("path == 'eager' and moved[op] ~= nil"),
	function(r) return moved[r.op]*elements(r.op)/r.us*1e-3/rate("copy") end)
step_kernels = by(on("h100").benchmarking_script{size="small", context=512,
	precision="fp32"}, "fusion", "kernels")
eager_kernels = by(both_paths{path="eager"}, "op", "kernels")
block_part = by(on("h100").nsys_profile{size="xl", context=512, precision="fp32",
	fusion="eager"}, "range", "kernels/shapes.xl.L")
-- of the eager path's nine matmuls, four in attention are linear layers
block_kernels = {Norm=eager_kernels("rmsnorm forward"),
	Softmax=eager_kernels("softmax forward"),
	Swiglu=eager_kernels("swiglu forward")}
block_kernels.Rope = block_part("forward attention") - 4
	- block_part("forward scores") - block_part("forward softmax")
	- block_part("forward values")
block_kernels.EagerAll = 9 + 2*(1 + block_kernels.Norm) + block_kernels.Rope
	+ block_kernels.Softmax + block_kernels.Swiglu
fused_pass = on("h100").nsys_profile{size="xl", context=512, precision="fp32",
	fusion="fused", range="forward"}.kernels
-- less embedding, last norm, head and loss, which is two
block_kernels.FusedAll = (fused_pass - 5)//shapes.xl.L
saved_by_block = on("h100").memory_profiling_saved{precision="fp32"}
saved_MiB = function(path, ...)
	return sum(saved_by_block{fusion=path, tensor={...}}.MiB)
end
block_MiB = by(saved_by_block{rank=1}, "fusion", "block_MiB")
block_saved = {EagerX=saved_MiB("eager", "residual after ffn"),
	FusedX=saved_MiB("fused", "residual")/2, EagerNorm=saved_MiB("eager", "ln1"),
	EagerQkv=saved_MiB("eager", "attn.q", "attn.k", "attn.v"),
	FusedQkv=saved_MiB("fused", "attn.qkv"),
	EagerP=saved_MiB("eager", "attn.softmax"),
	FusedP=saved_MiB("fused", "attn.logsumexp"),
	EagerO=saved_MiB("eager", "attn.values"),
	FusedO=saved_MiB("fused", "attn.values"),
	EagerGate=saved_MiB("eager", "ffn.w1", "ffn.w3"),
	FusedGate=saved_MiB("fused", "ffn.w1 and w3"),
	EagerH=saved_MiB("eager", "ffn.swiglu"),
	EagerAll=fixed(block_MiB("eager"), 0), FusedAll=fixed(block_MiB("fused"), 0)}
