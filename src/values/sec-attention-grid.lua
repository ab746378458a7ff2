grid_key = function(causal, batch, heads, n, d)
	return table.concat({causal, batch, heads, n, d}, " ")
end
grid_row, grid_keys = {}, {}
for _, r in ipairs(each(on("h100").flash_benchmarking_grid{status="ok"})) do
	local key = grid_key(r.causal, r.batch, r.heads, r.n, r.d)
	local kind = r.by == "PyTorch" and r.variant
		or r.variant:find("atomic") and "atomic" or "deterministic"
	grid_row[kind .. key] = r
	if kind == "pytorch-cudnn" then table.insert(grid_keys, key) end
end

-- our time over cuDNN's; how: "" by calls, "_replay"
grid_over = function(key, kind, pass, how)
	local ours, cudnn = grid_row[kind .. key], grid_row["pytorch-cudnn" .. key]
	local column = pass .. how .. "_ms"
	return ours[column]/cudnn[column]
end
grid_cell = function(causal, batch, heads, n, d, ...)
	return grid_over(grid_key(causal, batch, heads, n, d), ...)
end

grid_margin = 0.03                     -- beyond it a pass is called behind
-- shapes with the mask ("yes") or without on which a pass is behind cuDNN's
grid_behind = function(kind, pass, causal, how)
	local keys = {}
	for _, key in ipairs(grid_keys) do
		if grid_row["pytorch-cudnn" .. key].causal == causal
				and grid_over(key, kind, pass, how) > 1 + grid_margin then
			table.insert(keys, key)
		end
	end
	return keys
end
grid_masked_behind = 0                -- of both passes and both accumulations
for _, kind in ipairs {"deterministic", "atomic"} do
	for _, how in ipairs {"", "_replay"} do
		grid_masked_behind = grid_masked_behind
			+ #grid_behind(kind, "fwd", "yes", how)
			+ #grid_behind(kind, "bwd", "yes", how)
	end
end
brief_over = function(how)
	return grid_cell("no", 4, 16, 1024, 128, "deterministic", "bwd", how)
end
middle_over = function(how)
	return grid_cell("no", 4, 16, 4096, 128, "deterministic", "bwd", how)
end

-- a pass's time by calls over that by replays
called = function(r, pass) return r[pass .. "_ms"]/r[pass .. "_replay_ms"] end
shortest = function(kind)
	return grid_row[kind .. grid_key("yes", 4, 12, 512, 64)]
end
short_over = function(pass)
	return shortest("deterministic")[pass .. "_replay_ms"]
		/shortest("pytorch-cudnn")[pass .. "_replay_ms"]
end
-- the most by which calls and replays differ in passes of half a millisecond
call_spread = 0
for _, key in ipairs(grid_keys) do
	for _, pass in ipairs {"fwd", "bwd"} do
		for _, kind in ipairs {"deterministic", "pytorch-cudnn"} do
			local r = grid_row[kind .. key]
			if r[pass .. "_replay_ms"] >= 0.5 then
				call_spread = math.max(call_spread, abs(called(r, pass) - 1))
			end
		end
	end
end
