-- two ranks, one H100's NVLink
ddp_floor_ms = function(size, width) return timed_row(size, 512).parameters*width
	/450*1e-6 end
ddp_window_ms = by(on("h100").benchmarking_script{context=512, fusion="fused"},
	"size, precision", "bwd_med_ms")
ddp_share = function(size, precision, width) return ddp_floor_ms(size, width)
	/ddp_window_ms(size, precision) end
xl_C, xl_F = shapes.xl.C, shapes.xl.F
-- elements of all parameters, in the order of the buffer
gradient_counts = function(size)
	local s = shapes[size]
	local counts = {vocabulary*s.C}
	for _ = 1, s.L do
		for _, n in ipairs({s.C, s.C^2, s.C^2, s.C^2, s.C^2, s.C, s.C*s.F,
			s.C*s.F, s.C*s.F}) do table.insert(counts, n) end
	end
	table.insert(counts, s.C)
	table.insert(counts, vocabulary*s.C)
	return counts
end
-- how many buckets of at most so many MB, with so many bytes a gradient
buckets_of = function(size, most, width)
	local n, filled, counts = 0, math.huge, gradient_counts(size)
	for i = #counts, 1, -1 do
		local MB = counts[i]*width*1e-6
		if filled + MB > most then n, filled = n + 1, 0 end
		filled = filled + MB
	end
	return n
end
