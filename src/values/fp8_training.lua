-- values of [](#fp8_training)
large_fp8 = by(on("h200x2").leaderboard_fp8, "precision")
large_head_ms = min(on("h200x2").leaderboard_probe{status="ok",
	part="matmuls of the head"}, "part_ms")
fp8_error = by(fp8_training_errors, "data, left, scaling")
fp8_normal = function(left, scaling) return fp8_error("normal", left, scaling) end
fp8_small = function(left, scaling)
	return fp8_error("outlier among small", left, scaling)
end
-- one rounding of normal numbers: a matmul has two, squares added
fp8_pair = function(left)
	return fp8_normal(left, left == "bf16" and "none" or "tensor").predicted
end
fp8_one = function(left)
	return left == "e5m2" and sqrt(fp8_pair("e5m2")^2
		- fp8_pair("e4m3")^2/2) or fp8_pair(left)/sqrt(2)
end
fp8_agree = all({"e4m3", "e5m2"}, "fp8_normal(it, 'tensor').measured \z
	== fp8_normal(it, 'row').measured and fp8_normal(it, 'row').measured \z
	== fp8_normal(it, 'block').measured", {fp8_normal=fp8_normal})
-- the part of the gain that casts take, at a width and so many tokens
fp8_peaks = by(on(meta(fp8_training, "machine")).peaks, "quantity", "value")
fp8_read_again = function(size)              -- N C elements of bf16 a block
	local row, shape = fp8_step(size, "tensor-delayed"), shapes[size]
	return 4*row.context*2*shape.C*shape.L
		/(fp8_peaks("copy")*1e6*row.step_ms)
end
fp8_taken = function(C, N, weights)
	return fp8_peaks("bf16")*1e12/(fp8_peaks("copy")*1e9)
		*(2/3/C + (weights or 0)*4/3/N)
end
-- of a step in bf16, the matmuls of the blocks; and the least ratio to it
fp8_linear = function(size)
	local row, m = fp8_training{size=size, scaling="tensor-delayed"}, shapes[size]
	return 6*4*row.context*m.L*(4*m.C^2 + 3*m.C*m.F)
		/(fp8_peaks("bf16")*1e9*row.bf16_ms)
end
fp8_bound = function(size)
	local row = fp8_training{size=size, scaling="tensor-delayed"}
	return 1 - fp8_linear(size)/2*(1 - fp8_taken(shapes[size].C, 4*row.context))
end
-- steps by scaling, with gradients in E5M2, and matmuls of all layers
fp8_step = function(size, scaling)
	return fp8_training{size=size, scaling=scaling, gradient="e5m2"}
end
fp8_matmuls = function(scaling)
	return fp8_training_gemm{size="2.7B", scaling=scaling, gradient="e5m2"}
end
fp8_cast_us = by(fp8_training_gemm{size="2.7B", layer="gate_up", pass="forward",
	gradient="e5m2"}, "scaling", "cast_us")
fp8_slower = fp8_cast_us("row")/fp8_cast_us("block")
-- casts by blocks, over what the matmuls gain; SwiGLU's casts add none
fp8_blocks = fp8_training_gemm{size="2.7B", scaling="block", gradient="e5m2"}
fp8_casts = fp8_blocks("pass == 'forward' and layer ~= 'w2' or pass == 'input' \z
	and layer ~= 'gate_up'")
fp8_cast_part = sum(fp8_casts, "cast_us")/sum(fp8_blocks, "bf16_us - fp8_us")
fp8_cast_rate = sum(fp8_casts, "cast_us*cast_GBps")/sum(fp8_casts, "cast_us")
	/fp8_peaks("copy")
fp8_more = (function()
	local row, m = fp8_step("2.7B", "tensor-delayed"), shapes["2.7B"]
	return {measured=row.peak_MiB - row.bf16_MiB, derived=m.L*(2*(4*m.C^2
		+ 3*m.C*m.F) + 4*row.context*(3*m.C + m.F))/2^20}
end)()
-- steps beside PyTorch's, over ours in FP8
fp8_peer = by(fp8_training_peers, "size, impl, precision", "step_ms")
fp8_peak = by(fp8_training_peers, "size, impl, precision", "peak_MiB")
fp8_update = by(fp8_training_peers, "size, impl, precision", "opt_ms")
fp8_phases = by(fp8_training_peers, "size, impl, precision",
	"fwd_ms + bwd_ms + opt_ms")
fp8_over = function(size, impl, precision)
	return fp8_peer(size, impl, precision)/fp8_peer(size, "ours", "fp8")
end
-- runs of one kind, one for each seed
fp8_seeds = function(size, precision, scaling, gradient)
	return fp8_training_learning{size=size, precision=precision,
		scaling=scaling, gradient=gradient}
end
fp8_mean = function(...)
	local rows = fp8_seeds(...)
	return mean(rows, "held_out_nats")
end
fp8_spread = function(...)
	local rows = fp8_seeds(...)
	return max(rows, "held_out_nats") - min(rows, "held_out_nats")
end
fp8_off = function(size, ...)
	return fp8_mean(size, ...) - fp8_mean(size, "bf16", "none", "none")
end
-- by blocks, with gradients in E4M3 beside E5M2
fp8_e4m3_alike = all(fp8_training{gradient="e4m3"}, "near(of_bf16, \z
	step(size, 'block').of_bf16, 0.02)", {step=fp8_step})
	and all(fp8_training_learning{gradient="e4m3"}, "abs(mean(size, 'fp8', \z
	'block', 'e4m3') - mean(size, 'fp8', 'block', 'e5m2')) \z
	< spread(size, 'bf16', 'none', 'none')", {mean=fp8_mean,
	spread=fp8_spread})
fp8_learns = all(fp8_training_learning, "abs(off(size, precision, scaling, \z
	gradient)) < spread(size, 'bf16', 'none', 'none')", {off=fp8_off,
	spread=fp8_spread})
