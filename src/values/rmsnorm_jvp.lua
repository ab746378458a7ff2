-- rmsnorm_jvp.lua: errors of the gradients against their predictions
fd, fd_best = rmsnorm_jvp, rmsnorm_jvp_best
branch_holds = function(x, y, low, tolerance)
	return all(fd("width >= 64"), "it[x] >= low or it[x] <= 100*it[y] \z
		or near(dx_error, it[x], tolerance)",
		{x=x, y=y, low=low, tolerance=tolerance})
end
