-- rmsnorm_jvp.lua: errors of the gradients against their predictions
fd, fd_best = rmsnorm_jvp, rmsnorm_jvp_best
branch_holds = function(x, y, low, tolerance)
	return all(fd, function(r)
		local on_branch = r.width >= 64 and r[x] < low and r[x] > 100*r[y]
		return not on_branch or near(r.dx_error, r[x], tolerance)
	end)
end
two_wide = fd{width=2, step=0.01}.dx_error/fd{width=2, step=0.01}.truncation
