-- layer_norm.lua: three norms over 50,000 rows, and models with them
norms = on("h100").layer_norm
native = norms{norm="layernorm"}
norm_ms = by(norms, "norm, width", "fwd_ms")
torch_row = function(impl, norm, width) return norms{impl="pytorch-" .. impl,
	norm=norm, width=width} end
torch_ms = function(...) return torch_row(...).fwd_ms end
-- a norm's time over our LayerNorm's; PyTorch's eager RMSNorm over its LayerNorm
over_native = function(norm, pass)
	return map(native, "like(norms{norm=norm}, 'width')[pass]/it[pass]",
		{norm=norm, pass=pass .. "_ms"})
end
torch_gap = map(native, "torch_ms('eager', 'RMSNorm', width)/torch_ms('native', \z
	'LayerNorm', width)")
torch_layer = by(norms{impl="pytorch-native", norm="LayerNorm"}, "width",
	"fwd_fraction")
-- how far eager RMSNorm is from a copy, by the bytes that it moves
eager_rate = function(pass, moved, must)
	return map(norms{norm="rmsnorm eager"}, "abs(it[fraction]*bytes - 1)",
		{fraction=pass .. "_fraction", bytes=moved/must})
end
eager_off = max{max(eager_rate("fwd", 28, 8)), max(eager_rate("bwd", 88, 16))}
inside = on("h100").layer_norm_model{status="ok", fusion="eager"}
all_fused = on("h100").layer_norm_model{status="ok", fusion="fused"}
inside_ms = function(size, norm, pass) return inside{size=size,
	norm=norm}[(pass or "fwd") .. "_ms"] end
all_fused_ms = by(all_fused, "size", "fwd_ms")
-- what a norm saves of a pass with eager RMSNorm
norm_saves = function(norm, pass)
	return map(inside{norm=norm}, "1 - it[pass .. '_ms'] \z
		/inside_ms(size, 'rmsnorm eager', pass)", {pass=pass})
end
falls = function(list) return increasing(list, "-it") end
-- what LayerNorm should save of a forward pass by its bytes, in ms and as a part
norm_count = function(size) return 2*shapes[size].L + 1 end
saved_by_bytes = function(size, bytes)
	return norm_count(size)*bytes*2048*shapes[size].C/copy_of_norms/1e6
end
predicted_saving = map(inside{norm="layernorm"}, "saved_by_bytes(size, \z
	20)/inside_ms(size, 'rmsnorm eager')")
-- how far apart the model's passes with one norm and the other are
norms_apart = max(inside{norm="layernorm"}, "abs(inside_ms(size, \z
	'rmsnorm fused')/fwd_ms - 1)")
-- what fusing all saves over what LayerNorm saves, at least
fusing_over_norm = min(inside{norm="layernorm"},
	"(inside_ms(size, 'rmsnorm eager') - all_fused_ms(size)) \z
	/(inside_ms(size, 'rmsnorm eager') - fwd_ms)")
