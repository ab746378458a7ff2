-- rmsnorm_jvp.lua: errors of the gradients against their predictions
fd, fd_best = rmsnorm_jvp, rmsnorm_jvp_best
branch_holds = function(x, y, low, tolerance)
	return all(fd, function(r)
		local on_branch = r.width >= 64 and r[x] < low and r[x] > 100*r[y]
		return not on_branch or near(r.dx_error, r[x], tolerance)
	end)
end
gain_holds = all(fd, function(r)
	return r.width < 768 or r.step > 1e-3
		or near(r.dg_error, 2^-53/(3*r.step), 0.33)
end)
best_holds = all(fd_best, function(r)
	return r.width < 64 or between(r.dx_error/r.predicted_error, 0.5, 2)
end)
two_wide = fd{width=2, step=0.01}.dx_error/fd{width=2, step=0.01}.truncation
