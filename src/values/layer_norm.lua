-- layer_norm.lua: three norms over 50,000 rows, and models with them
norms = on("h100").layer_norm
native = norms{norm="layernorm"}
norm_ms = function(norm, width) return norms{norm=norm, width=width}.fwd_ms end
torch_row = function(impl, norm, width)
	return norms{impl="pytorch-" .. impl, norm=norm, width=width}
end
torch_ms = function(...) return torch_row(...).fwd_ms end

-- a norm's time over our LayerNorm's; PyTorch's eager RMSNorm over its LayerNorm
over_native = function(norm, pass)
	return map(native, function(r)
		return norms{norm=norm, width=r.width}[pass .. "_ms"]/r[pass .. "_ms"]
	end)
end
torch_gap = map(native, function(r)
	return torch_ms("eager", "RMSNorm", r.width)
		/torch_ms("native", "LayerNorm", r.width)
end)
torch_layer = function(width)
	return torch_row("native", "LayerNorm", width).fwd_fraction
end

-- how far eager RMSNorm is from a copy, by the bytes that it moves
eager_rate = function(pass, moved, must)
	return map(norms{norm="rmsnorm eager"}, function(r)
		return abs(r[pass .. "_fraction"]*moved/must - 1)
	end)
end
eager_off = max{max(eager_rate("fwd", 28, 8)), max(eager_rate("bwd", 88, 16))}

inside = on("h100").layer_norm_model{status="ok", fusion="eager"}
all_fused = on("h100").layer_norm_model{status="ok", fusion="fused"}
inside_ms = function(size, norm, pass)
	return inside{size=size, norm=norm}[(pass or "fwd") .. "_ms"]
end
all_fused_ms = function(size) return all_fused{size=size}.fwd_ms end

-- what a norm saves of a pass with eager RMSNorm
norm_saves = function(norm, pass)
	return map(inside{norm=norm}, function(r)
		return 1 - r[pass .. "_ms"]/inside_ms(r.size, "rmsnorm eager", pass)
	end)
end
falls = function(list)
	for i = 2, #list do
		if list[i] >= list[i - 1] then return false end
	end
	return true
end

-- what LayerNorm should save of a forward pass by its bytes, in ms and as a part
norm_count = function(size) return 2*shapes[size].L + 1 end
saved_by_bytes = function(size, bytes)
	return norm_count(size)*bytes*2048*shapes[size].C/copy_of_norms/1e6
end
predicted_saving = map(inside{norm="layernorm"}, function(r)
	return saved_by_bytes(r.size, 20)/inside_ms(r.size, "rmsnorm eager")
end)

-- how far apart the model's passes with one norm and the other are
norms_apart = max(map(inside{norm="layernorm"}, function(r)
	return abs(inside_ms(r.size, "rmsnorm fused")/r.fwd_ms - 1)
end))

-- what fusing all saves over what LayerNorm saves, at least
fusing_over_norm = min(map(inside{norm="layernorm"}, function(r)
	local eager = inside_ms(r.size, "rmsnorm eager")
	return (eager - all_fused_ms(r.size))/(eager - r.fwd_ms)
end))
