-- gradient_checkpointing.lua: `2.7B` at context 2048, bf16, fused; MiB
ckpt = on("h100").gradient_checkpointing{status="ok"}
ckpt_one = ckpt{nested="no"}
ckpt_deep = ckpt{nested="yes"}
ckpt_A = mem_saved(2048, 4, 2, "fused")
ckpt_I = 4*2048*mem_shape.C*4/2^20
ckpt_star = sqrt(mem_shape.L*ckpt_I/ckpt_A)
ckpt_M = function(K) return (mem_shape.L//K - 1)*ckpt_I + K*ckpt_A end
ckpt_derived_best = ckpt_M(2) < ckpt_M(1) and ckpt_M(2) < ckpt_M(3)
ckpt_best = argmin(ckpt_one, "peak_MiB")
ckpt_more = function(K) return ckpt_one{K=K}.peak_MiB - ckpt_best.peak_MiB end
ckpt_off = max(ckpt, "abs(derived_MiB - peak_MiB)")
-- blocks run again, in forward passes; the longer step, as a part
ckpt_again = function(rows, K) return (rows{K=K}.bwd_ms - ckpt_one{K=0}.bwd_ms)
	/rows{K=K}.fwd_ms end
ckpt_large = ckpt_one{K=function(k) return k > 2 end}
ckpt_all_again = map(ckpt_large, "ckpt_again(ckpt_one, K)")
ckpt_work = near(ckpt_again(ckpt_one, 1), 1 - 1/4, 0.05)
	and near(ckpt_again(ckpt_one, 2), 1 - 1/8, 0.05)
	and near(ckpt_again(ckpt_deep, 1), 3.5 - 1/4, 0.05)
	and between(min(ckpt_all_again), 0.95, 1) and max(ckpt_all_again) < 1.08
ckpt_longer = function(K) return ckpt_one{K=K}.step_ms/ckpt_one{K=0}.step_ms
	- 1 end
ckpt_least = min(ckpt_large, "ckpt_longer(K)")
ckpt_start = function(blocks, A)          -- a block's activations are A inputs
	local s = {t=0, out={}, curve={"(0,0)"}, saved={}, kept={}, most=0}
	function s.put(...) table.insert(s.out, string.format(...)) end
	function s.after(ticks)
		local n = 0
		s.t = s.t + ticks
		for b = 1, blocks do
			n = n + (s.kept[b] and A or s.saved[b] and 1 or 0)
		end
		s.most = max(s.most, n)
		table.insert(s.curve, string.format("(%d,%.2f)", s.t, -n/13))
	end
	function s.forward(b, keep)
		s.put("\\%s{%d}{%d}", keep and "keep" or "run", s.t, b)
		s.after(0)
		s.kept[b] = keep
		s.after(1)
	end
	return s
end
ckpt_back = function(s, b)                -- propagates through a block
	s.put("\\back{%d}{%d}", s.t, b)
	s.after(2)
	s.kept[b] = nil
	if s.saved[b] then s.put("\\hold{%d}{%d}{%d}", b, s.saved[b], s.t) end
	s.saved[b] = nil
	s.after(0)
end
ckpt_propagate = function(s, first, n, together)
	if n <= together then
		for b = first, first + n - 1 do s.forward(b, true) end
		for b = first + n - 1, first, -1 do ckpt_back(s, b) end
		return
	end
	local half = (n + 1)//2
	for b = first, first + half - 1 do s.forward(b) end
	s.saved[first + half] = s.t
	ckpt_propagate(s, first + half, n - half, together)
	ckpt_propagate(s, first, half, together)
end
-- groups of so many blocks, 0: none is run again
ckpt_run = function(blocks, group, together, A)
	local s = ckpt_start(blocks, A)
	for b = 1, blocks do
		if group > 0 and (b - 1) % group == 0 then s.saved[b] = s.t end
		s.forward(b, group == 0)
	end
	if group == 0 then
		for b = blocks, 1, -1 do ckpt_back(s, b) end
		return s
	end
	for first = blocks - group + 1, 1, -group do
		ckpt_propagate(s, first, group, together)
	end
	return s
end
ckpt_picture = {}
for _, of in ipairs {{"None", "None", 0, 1}, {"Pair", "Pairs", 2, 2},
		{"Half", "Halves", 8, 1}} do
	local s = ckpt_run(8, of[3], of[4], 8)
	ckpt_picture[of[2]] = table.concat(s.out)
	ckpt_picture[of[1] .. "Curve"] = table.concat(s.curve, " ")
	ckpt_picture[of[1] .. "Peak"] = "$" .. s.most .. "I$"
end
