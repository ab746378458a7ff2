-- sec-cluster-setting.lua: the machines of the bounds
dp = data_parallel_calcs
-- FLOPs that a device computes in the time of one byte sent
ridge_of_link = function(hardware)
	local r = dp{hardware=hardware}
	return r.TFLOPs*1e3/r.GBps
end
