-- rmsnorm_backward.lua: the pass of a model's rows
norm_back_of = function(column)
	local of = on("h100").kernel_speed{size="2.7B", path="fused",
		op="rmsnorm backward"}
	return of{precision="bf16"}[column]/of{precision="fp32"}[column]
end
