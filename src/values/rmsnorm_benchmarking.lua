-- rmsnorm_benchmarking.lua: times over those of the kernels chosen by width
rms_chosen = rms{impl="ours", variant="by_width"}
chosen = function(precision, width)
	return rms_chosen{precision=precision, width=width}
end
rms_over = function(variant, precision, width, pass)
	return rms{impl="ours", variant=variant, precision=precision,
		width=width}[pass .. "_ms"]/chosen(precision, width)[pass .. "_ms"]
end

-- lists over the widths, in one format or in both
rms_of = function(precision, variant, pass)
	return map(rms_chosen{precision=precision}, function(r)
		return rms_over(variant, precision, r.width, pass)
	end)
end
rms_all = function(variant, pass)
	return map(rms_chosen, function(r)
		return rms_over(variant, r.precision, r.width, pass)
	end)
end
range_of = function(list, n)
	return ratio(min(list), n or 2) .. " to " .. ratio(max(list), n or 2)
end

-- a form of PyTorch's over our kernel
rms_peer = function(precision, impl, norm, pass)
	return map(rms{precision=precision, impl=impl, norm=norm}, function(r)
		return r[pass .. "_ms"]/chosen(precision, r.width)[pass .. "_ms"]
	end)
end
compiled_off = max(map(rms{impl="pytorch-compiled", norm="rmsnorm"}, function(r)
	local of = chosen(r.precision, r.width)
	return max{abs(r.fwd_ms/of.fwd_ms - 1), abs(r.both_ms/of.both_ms - 1)}
end))

-- are the smallest fractions of a copy those of the narrowest rows?
rms_narrow = all(rms_chosen, function(r)
	local narrow = chosen(r.precision, 1024)
	return r.fwd_fraction >= narrow.fwd_fraction
		and r.bwd_fraction >= narrow.bwd_fraction
end)

-- how far the ratios to eager RMSNorm are from those of the bytes
rms_bytes = {fwd={fp32=28/8, bf16=22/4}, bwd={fp32=88/12, bf16=78/6}}
rms_off = function(pass)
	return max(map(rms_chosen, function(r)
		return abs(rms_over("eager", r.precision, r.width, pass)
			/rms_bytes[pass][r.precision] - 1)
	end))
end

-- how far bf16 is from half the time of fp32
rms_half = max(map(rms_chosen, function(r)
	local low, full = chosen("bf16", r.width), chosen("fp32", r.width)
	return max{abs(2*low.fwd_ms/full.fwd_ms - 1),
		abs(2*low.bwd_ms/full.bwd_ms - 1)}
end))

rms_wins = all(rms_widths{variant="by_width"}, function(r)
	return r.both_ms < rms_widths{variant="eager", precision=r.precision,
		width=r.width}.both_ms
end)

-- what the kernel saves of both passes of a model in ms; by bytes, as a part
saved_ms = function(size)
	local before, with = inside{size=size, norm="rmsnorm eager"},
		inside{size=size, norm="rmsnorm fused"}
	return before.fwd_ms + before.bwd_ms - with.fwd_ms - with.bwd_ms
end
predicted_both = map(inside{norm="rmsnorm eager"}, function(r)
	return saved_by_bytes(r.size, 28 - 8 + 88 - 16)/(r.fwd_ms + r.bwd_ms)
end)
