-- FLOPs of five matmuls over those of the tensor cores in the clocks of a pass
backward_part = function(variant, n, heads)
	return tensor_part(5, heads or 16, n or 16384, sum(counter_rows{
		variant=variant, op="attention backward"}, "launch_us*1e3*SM_GHz"))
end
