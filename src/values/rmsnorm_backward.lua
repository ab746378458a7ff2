-- rmsnorm_backward.lua: what a ring adds to a backward pass
ring_of = by(rms{impl="ours"}, "variant, precision, width", "bwd_ms")
ring_over = function(...)
	return ring_of("ahead", ...)/ring_of("packs", ...) - 1
end
