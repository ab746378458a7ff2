-- layer_norm.lua: three norms over 50,000 rows, and models with them
norms = on("h100").layer_norm
native = norms{norm="layernorm"}
norm_ms = by(norms, "norm, width", "fwd_ms")
torch_ms = function(impl, norm, width) return norms{impl="pytorch-" .. impl,
	norm=norm, width=width}.fwd_ms end
-- a norm's time over our LayerNorm's
over_native = function(norm, pass)
	return map(native, "like(norms{norm=norm}, 'width')[pass]/it[pass]",
		{norm=norm, pass=pass .. "_ms"})
end
inside = on("h100").layer_norm_model{status="ok", fusion="eager"}
inside_ms = function(size, norm, pass) return inside{size=size,
	norm=norm}[(pass or "fwd") .. "_ms"] end
all_fused_ms = by(on("h100").layer_norm_model{status="ok", fusion="fused"},
	"size", "fwd_ms")
-- what a norm saves of a pass with eager RMSNorm
norm_saves = function(norm, pass)
	return map(inside{norm=norm}, "1 - it[pass .. '_ms'] \z
		/inside_ms(size, 'rmsnorm eager', pass)", {pass=pass})
end
falls = function(list) return increasing(list, "-it") end
-- what LayerNorm should save of a forward pass by its bytes, in ms and as a part
saved_by_bytes = function(size, bytes) return (2*shapes[size].L + 1)*bytes*2048
	*shapes[size].C/rate("copy")/1e6 end
predicted_saving = map(inside{norm="layernorm"}, "saved_by_bytes(size, \z
	20)/inside_ms(size, 'rmsnorm eager')")
-- what the kernel of RMSNorm saves forward, in deviations of the pass
norm_gained = function(size)
	local row = inside{size=size, norm="rmsnorm fused"}
	return (inside_ms(size, "rmsnorm eager") - row.fwd_ms)/row.fwd_sd_ms
end
