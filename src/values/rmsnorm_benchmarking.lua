-- rmsnorm_benchmarking.lua: times over those of the kernels chosen by width
rms_chosen = rms{impl="ours", variant="by_width"}
chosen = by(rms_chosen, "precision, width")
rms_over = function(variant, precision, width, pass) return rms{impl="ours",
	variant=variant, precision=precision, width=width}[pass .. "_ms"]
	/chosen(precision, width)[pass .. "_ms"] end
-- lists over the widths: a version of ours, in one format or in both (nil); a
-- form of PyTorch's
rms_of = function(precision, variant, pass) return map(rms_chosen{precision=
	precision}, "rms_over(variant, precision, width, pass)", {variant=variant,
	pass=pass}) end
rms_wide = function(form, pass) return ratio(rms{precision="fp32", width=8192}(
	form)[pass .. "_ms"], 3) end  -- ms
rms_peer = function(precision, impl, norm, pass)
	return map(rms{precision=precision, impl=impl, norm=norm},
		"it[pass]/chosen(precision, width)[pass]", {pass=pass .. "_ms"})
end
