grid_rows = on("h100").flash_benchmarking_grid{status="ok"}
grid = by(grid_rows, "variant, causal, batch, heads, n, d")
grid_variant = {deterministic="warp_specialized",
	["pytorch-cudnn"]="pytorch-cudnn", atomic="warp_specialized-atomic"}
grid_cudnn = grid_rows{variant="pytorch-cudnn"}
-- our time over cuDNN's; how: "" by calls, "_replay"
grid_over = function(r, kind, pass, how)
	local ours = grid(grid_variant[kind], r.causal, r.batch, r.heads, r.n, r.d)
	return ours[pass .. how .. "_ms"]/r[pass .. how .. "_ms"]
end
grid_cell = function(causal, batch, heads, n, d, ...)
	return grid_over(grid("pytorch-cudnn", causal, batch, heads, n, d), ...)
end
grid_margin = 0.03  -- beyond it a pass is called behind
-- shapes with the mask ("yes") or without on which a pass is behind cuDNN's
grid_behind = function(kind, pass, causal, how)
	return pick(grid_cudnn{causal=causal}, "grid_over(it, kind, pass, how) \z
		> 1 + grid_margin", {kind=kind, pass=pass, how=how})
end
grid_masked_behind = sum({"", "_replay"}, "#grid_behind('deterministic', 'fwd', \z
	'yes', it) + #grid_behind('deterministic', 'bwd', 'yes', it) \z
	+ #grid_behind('atomic', 'fwd', 'yes', it) + #grid_behind('atomic', 'bwd', \z
	'yes', it)")
brief_over = function(how) return grid_cell("no", 4, 16, 1024, 128,
	"deterministic", "bwd", how) end
middle_over = function(how) return grid_cell("no", 4, 16, 4096, 128,
	"deterministic", "bwd", how) end
-- a pass's time by calls over that by replays
called = function(r, pass) return r[pass .. "_ms"]/r[pass .. "_replay_ms"] end
shortest = function(kind) return grid(grid_variant[kind], "yes", 4, 12, 512,
	64) end
short_over = function(pass) return shortest("deterministic")[pass .. "_replay_ms"]
	/shortest("pytorch-cudnn")[pass .. "_replay_ms"] end
-- the most by which calls and replays differ in passes of half a millisecond
call_spread = max({"fwd", "bwd"}, "max(pick(grid_rows{variant={ \z
	'warp_specialized', 'pytorch-cudnn'}}, 'it[p] >= 0.5', \z
	{p=it .. '_replay_ms'}), 'abs(called(it, pass) - 1)', {pass=it})")
