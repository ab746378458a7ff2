sockets = function(n, bytes) return h200.distributed_communication_multi_node{
	status="ok", link=n == 1 and "1 socket" or n .. " sockets", bytes=bytes} end
cable_reduce = by(on("cpu").distributed_communication_multi_node{status="ok",
	link="1 Gbit/s"}, "transport, ranks, bytes")
node_reduce = by(on("cpu").distributed_communication_single_node{status="ok",
	dtype="fp32"}, "transport, ranks, bytes")
cable_costs = function(ranks)                -- the time on one node, 10 MB
	return cable_reduce("ring", ranks, 1e7).time_ms
		/node_reduce("ring", ranks, 1e7).time_ms
end
cable_over = function(transport, ranks)      -- of the bound of a ring, 10 MB
	local bound = 2*(ranks - 1)/ranks*1e7/0.125e9*1e3
	return cable_reduce(transport, ranks, 1e7).time_ms/bound
end
