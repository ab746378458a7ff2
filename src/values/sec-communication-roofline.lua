-- sec-communication-roofline.lua: communication over computing, by the closed
-- forms at the data sheets' rates and as measured on two and four H200, bf16
roof_rho = ridge_of_link("H100 NVLink")
roof_data = function(N, tokens) return (N - 1)/N*roof_rho/tokens end
roof_group = function(size, N)
	local s = shapes[size]
	return 8/3*(N - 1)*roof_rho/(4*s.C + 3*s.F)
end
-- rows of the step of one GPU, and of a strategy with collectives isolated
roof_of = function(N) return on(N == 4 and "h200x4" or "h200x2") end
roof_row = function(N, size, strategy)
	local times = roof_of(N).optimizer_state_sharding_accounting_times
	if strategy == "fsdp" then
		return roof_of(N).fsdp_accounting{size=size, precision="bf16",
			strategy="fsdp", prefetch=1, sums="comm"}
	end
	return times{size=size, precision="bf16", strategy=strategy, sums="comm"}
end
roof_tp = function(N, size, tp) return roof_of(N).tensor_parallel{size=size,
	precision="bf16", tp=tp, dp=1} end
-- measured ratios
roof_ddp = function(N, size) return roof_row(N, size, "ddp").alone_ms
	/roof_row(N, size, "single").bwd_ms end
roof_fsdp = function(N, size)
	return roof_row(N, size, "fsdp").alone_ms/both_of(roof_row(N, size, "single"))
end
roof_tensor = function(N, size)
	return roof_tp(N, size, N).alone_ms/(both_of(roof_tp(N, size, 1))/N)
end
-- how far the points are from their lines, and how high they are
roof_cases = {{2, "xl"}, {2, "2.7B"}, {4, "xl"}, {4, "2.7B"}}
roof_data_off = max(roof_cases,
	"max(abs(roof_ddp(it[1], it[2])/roof_data(it[1], 2048) - 1), \z
	abs(roof_fsdp(it[1], it[2])/roof_data(it[1], 2048) - 1))")
roof_group_off = map(roof_cases,
	"roof_tensor(it[1], it[2])/roof_group(it[2], it[1])")
roof_drawn = max(roof_tensor(2, "2.7B"), roof_tensor(4, "2.7B"),
	max(roof_cases, "max(roof_ddp(it[1], it[2]), roof_fsdp(it[1], it[2]))"))
-- passes of one GPU over the FLOPs of linear layers at the data sheet's rate
roof_slow = function(size) return both_of(roof_row(2, size, "single"))
	/(linear_FLOP(size, 2048)/989e12*1e3) end
-- bytes that a rank of two sends over the time of its collectives, of W
roof_link = function(way, size)
	local ddp, group = roof_row(2, size, "ddp"), roof_tp(2, size, 2)
	return (way == "ddp" and ddp.sent_derived_MB/ddp.alone_ms
		or group.group_MB/group.alone_ms)/450
end
-- positions in mm: an octave of tokens from 128 on, a decade of the ratio
roof_mm = function(ratio) return 20*log(ratio)/log(10) end
roof_text = function(ratio) return ("%.2f"):format(roof_mm(ratio)) end
roof_points = function(of, N, shift)
	local list = {}
	for i, size in ipairs{"xl", "2.7B"} do
		list[i] = ("%.2f/%.2f"):format(4*13.5 + shift + (i - 1)*2.4,
			roof_mm(of(N, size)))
	end
	return table.concat(list, ",")
end
roof_picture = {Octave="13.5", Decade=20, Top=22, Bottom=24,
	DataTwo=roof_text(roof_data(2, 128)),
	DataTwoEnd=roof_text(roof_data(2, 2^15)),
	DataFour=roof_text(roof_data(4, 128)),
	DataFourEnd=roof_text(roof_data(4, 2^15)),
	GroupTwo=roof_text(roof_group("2.7B", 2)),
	GroupFour=roof_text(roof_group("2.7B", 4)), Ddp=roof_points(roof_ddp, 2, -6),
	DdpFour=roof_points(roof_ddp, 4, -6), Fsdp=roof_points(roof_fsdp, 2, -1.2),
	FsdpFour=roof_points(roof_fsdp, 4, -1.2),
	Group=("%.2f/%.2f"):format(58.5, roof_mm(roof_tensor(2, "2.7B"))),
	GroupFourMeasured=("%.2f/%.2f"):format(58.5, roof_mm(roof_tensor(4, "2.7B")))}
