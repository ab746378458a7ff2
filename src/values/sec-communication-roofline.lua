-- sec-communication-roofline.lua: communication over computing, by the closed
-- forms at the data sheets' rates and as measured on two and four H200, bf16
roof_rho = ridge_of_link("H100 NVLink")
roof_data = function(N, tokens) return (N - 1)/N*roof_rho/tokens end
roof_group = function(size, N)
	return 8/3*(N - 1)*roof_rho/(4*shapes[size].C + 3*shapes[size].F)
end
roof_on = function(N) return on(N == 4 and "h200x4" or "h200x2") end
roof_of = function(N, size, strategy) return roof_on(N)
	.optimizer_state_sharding_accounting_times{size=size, precision="bf16",
	strategy=strategy, sums="comm"} end
roof_ratio = function(N, size, way)          -- measured
	local one = roof_of(N, size, "single")
	if way == "ddp" then return roof_of(N, size, way).alone_ms/one.bwd_ms end
	if way == "fsdp" then return roof_on(N).fsdp_accounting{size=size,
		precision="bf16", strategy=way, prefetch=1, sums="comm"}.alone_ms
		/both_of(one) end
	local group = roof_on(N).tensor_parallel{size=size, precision="bf16", dp=1}
	return group{tp=N}.alone_ms*N/both_of(group{tp=1})
end
-- the points over their lines, and those of both models for the drawing
roof_cases = {{2, "xl"}, {2, "2.7B"}, {4, "xl"}, {4, "2.7B"}}
roof_off = function(way) return map(roof_cases, "roof_ratio(it[1], it[2], way) \z
	/(way == 'tensor' and roof_group(it[2], it[1]) or roof_data(it[1], 2048))",
	{way=way}) end
roof_pair = function(N, way) return roof_ratio(N, "xl", way) .. ","
	.. roof_ratio(N, "2.7B", way) end
roof_picture = {DataTwo=roof_data(2, 128), DataTwoEnd=roof_data(2, 2^15),
	DataFour=roof_data(4, 128), DataFourEnd=roof_data(4, 2^15),
	GroupTwo=roof_group("2.7B", 2), GroupFour=roof_group("2.7B", 4),
	Ddp=roof_pair(2, "ddp"), DdpFour=roof_pair(4, "ddp"),
	Fsdp=roof_pair(2, "fsdp"), FsdpFour=roof_pair(4, "fsdp"),
	Group=roof_ratio(2, "2.7B", "tensor"),
	GroupFourMeasured=roof_ratio(4, "2.7B", "tensor")}
