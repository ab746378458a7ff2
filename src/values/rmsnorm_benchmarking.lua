-- rmsnorm_benchmarking.lua: times over those of the kernels chosen by width
rms_chosen = rms{impl="ours", variant="by_width"}
chosen = by(rms_chosen, "precision, width")
rms_over = function(variant, precision, width, pass)
	return rms{impl="ours", variant=variant, precision=precision,
		width=width}[pass .. "_ms"]/chosen(precision, width)[pass .. "_ms"]
end
-- lists over the widths, in one format or in both
rms_of = function(precision, variant, pass)
	return map(rms_chosen{precision=precision},
		"rms_over(variant, precision, width, pass)", {variant=variant, pass=pass})
end
rms_all = function(variant, pass) return rms_of(nil, variant, pass) end
range_of = function(list, n) return range(n or 2, list) end
-- a form of PyTorch's over our kernel
rms_peer = function(precision, impl, norm, pass)
	return map(rms{precision=precision, impl=impl, norm=norm},
		"it[pass]/chosen(precision, width)[pass]", {pass=pass .. "_ms"})
end
compiled_off = max(rms{impl="pytorch-compiled", norm="rmsnorm"},
	"max(abs(fwd_ms/chosen(precision, width).fwd_ms - 1), \z
	abs(both_ms/chosen(precision, width).both_ms - 1))")
-- are the smallest fractions of a copy those of the narrowest rows?
rms_narrow = all(rms_chosen, "fwd_fraction >= chosen(precision, \z
	1024).fwd_fraction and bwd_fraction >= chosen(precision, 1024).bwd_fraction")
-- how far the ratios to eager RMSNorm are from those of the bytes
rms_bytes = {fwd={fp32=28/8, bf16=22/4}, bwd={fp32=88/12, bf16=78/6}}
rms_off = function(pass)
	return max(rms_chosen, "abs(rms_over('eager', precision, width, pass) \z
		/rms_bytes[pass][precision] - 1)", {pass=pass})
end
-- how far bf16 is from half the time of fp32
rms_half = max({"fwd_ms", "bwd_ms"}, "max(rms_chosen, 'abs(2*chosen([[bf16]], \z
	width)[pass]/chosen([[fp32]], width)[pass] - 1)', {pass=it})")
rms_wins = all(rms_widths{variant="by_width"}, "both_ms \z
	< like(rms_widths{variant='eager'}, 'precision', 'width').both_ms")
-- what the kernel saves of both passes of a model in ms; by bytes, as a part
predicted_both = map(inside{norm="rmsnorm eager"}, "saved_by_bytes(size, 28 - 8 \z
	+ 88 - 16)/(fwd_ms + bwd_ms)")
